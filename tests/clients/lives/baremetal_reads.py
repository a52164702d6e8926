"""Every command of `baremetal` that only reads or switches something, on one deployed node."""

import json

from cli import Cli
from tell import ANYTHING, Has, Life

ADDRESS = "52:54:00:1f:04:01"


def a_node(cli):
    node = cli.show(
        "node create --driver fake-hardware --name seen --resource-class metal --description 'to be looked at'"
        " --owner alice --no-automated-clean"
    )
    cli.do(f"port create {ADDRESS} --node {node['uuid']}")
    cli.do("node manage seen --wait")
    cli.do("node provide seen --wait 60")
    return node["uuid"]


def nodes(life, cli, uuid):
    life.chapter("nodes")
    cli.list("node list --long", rows=1, uuid=uuid, driver="fake-hardware")
    cli.list("node list --fields uuid name provision_state", rows=1, uuid=uuid, name="seen")
    for filter, rows in [
        ("--provision-state available", 1),
        ("--provision-state active", 0),
        ("--maintenance", 0),
        ("--no-maintenance", 1),
        ("--associated", 0),
        ("--unassociated", 1),
        ("--retired", 0),
        ("--no-retired", 1),
        ("--driver fake-hardware", 1),
        ("--resource-class metal", 1),
        ("--resource-class other", 0),
        ("--owner alice", 1),
        ("--lessee bob", 0),
        ("--description-contains looked", 1),
        ("--instance-name web", 0),
        ("--fault 'power failure'", 0),
        ("--conductor-group ''", 1),
        ("--unsharded", 1),
        ("--sharded", 0),
        ("--shards east west", 0),
        ("--include-children", 1),
    ]:
        cli.list(f"node list {filter}", rows=rows)
    cli.list("node list --limit 1 --sort name:desc", rows=1)
    cli.list("node list --limit 0", rows=1)
    cli.list(f"node list --marker {uuid}", rows=0)
    cli.refused("node list --provision-state dancing", Has("dancing"))
    node = cli.show("node show seen --fields uuid name", uuid=uuid, name="seen")
    life.expect("columns", sorted(node), ["name", "uuid"])
    cli.show(f"node show {uuid}", conductor=ANYTHING, reservation=None)
    cli.list("node validate seen", rows=12)
    cli.list("shard list", must=False)


def old_versions(life, cli, uuid):
    life.chapter("other versions of the API")
    for version in ["1.1", "1.10", "1.31", "1.61", "1.83", "1.110", "1.115", "latest"]:
        state = None if version == "1.1" else "available"
        cli.show(f"--os-baremetal-api-version {version} node show {uuid}", uuid=uuid, provision_state=state)


def conductors_and_drivers(life, cli, _uuid):
    life.chapter("conductors and drivers")
    hostname = cli.list("conductor list", rows=1, hostname=ANYTHING, alive=True)[0]["hostname"]
    cli.list("conductor list --long", rows=1, drivers=Has("fake-hardware"))
    cli.show(f"conductor show {hostname}", alive=True, drivers=Has("fake-hardware"))
    drivers = cli.list("driver list")
    life.expect("drivers", json.dumps(drivers), Has("fake-hardware"))
    cli.list("driver list --long", must=False)
    cli.list("driver list --type dynamic")
    cli.show("driver show fake-hardware", name="fake-hardware", default_deploy_interface="direct", type="dynamic")
    cli.refused("driver show nothing", Has("nothing"))
    cli.list("driver property list fake-hardware", must=False)
    cli.list("driver raid property list fake-hardware", must=False)
    cli.list("driver passthru list fake-hardware", must=False)


def hardware(life, cli, _uuid):
    life.chapter("boot device, boot mode, console, interrupt")
    cli.show("node boot device show seen --supported", must=False, supported_boot_devices=ANYTHING)
    cli.do("node boot device set seen pxe --persistent", must=False)
    cli.show("node boot device show seen", must=False, boot_device="pxe", persistent=True)
    cli.do("node boot mode set seen bios", must=False)
    cli.wait_for("seen", must=False, boot_mode="bios")
    cli.do("node boot mode set seen uefi", must=False)
    cli.do("node secure boot on seen", must=False)
    cli.wait_for("seen", must=False, secure_boot=True)
    cli.do("node secure boot off seen", must=False)
    cli.show("node console show seen", must=False, console_enabled=False)
    cli.do("node inject nmi seen", must=False)

    life.chapter("BIOS, firmware, RAID")
    settings = cli.list("node bios setting list seen", must=False)
    cli.list("node bios setting list seen --long", must=False)
    if settings:
        name = settings[0]["name"]
        cli.show(f"node bios setting show seen {name}", must=False, name=name)
    cli.refused("node bios setting show seen NoSuchSetting", Has("NoSuchSetting"))
    cli.list("node firmware list seen", must=False)
    raid = {"logical_disks": [{"size_gb": 100, "raid_level": "1"}]}
    cli.do(f"node set seen --target-raid-config '{json.dumps(raid)}'", must=False)
    cli.show("node show seen", target_raid_config=raid)
    cli.do("node unset seen --target-raid-config", must=False)
    cli.show("node show seen", target_raid_config={})

    life.chapter("vendor passthru")
    cli.list("node passthru list seen", rows=8, name="create_subscription", must=False)
    cli.do("node passthru call seen first_method --http-method POST --arg bar=baz", must=False)
    cli.do(
        "node passthru call seen create_subscription --http-method POST --arg Destination=https://events.example/",
        must=False,
    )
    cli.refused("node passthru call seen nothing", Has("nothing"))


def history(life, cli, _uuid):
    life.chapter("history and inventory")
    events = cli.list("node history list seen", must=False)
    cli.list("node history list seen --long", must=False)
    if events:
        cli.show(f"node history get seen {events[0]['uuid']}", uuid=events[0]["uuid"], must=False)
    cli.refused("node inventory save seen", Has("404"))
    cli.show("node children list seen", children=None)


def empty_lists(life, cli, _uuid):
    life.chapter("lists of what is not there")
    for what in [
        "allocation",
        "chassis",
        "deploy template",
        "inspection rule",
        "port group",
        "runbook",
        "volume connector",
        "volume target",
    ]:
        cli.list(f"{what} list", rows=0, must=False)
        cli.refused(f"{what} show 1f000000-0000-4000-8000-000000000404", Has("1f000000"))


def main():
    with Life("What baremetal reads") as life:
        cli = Cli(life)
        uuid = a_node(cli)
        for part in [nodes, old_versions, conductors_and_drivers, hardware, history, empty_lists]:
            life.part(part, cli, uuid)


if __name__ == "__main__":
    main()
