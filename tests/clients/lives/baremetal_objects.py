"""Everything around a node, typed with `baremetal`: made, listed, shown, changed, removed."""

import json

from cli import Cli
from tell import ANYTHING, UUID, Has, Life, OneOf

ADDRESSES = [f"52:54:00:1f:01:{number:02x}" for number in range(1, 5)]


def nodes(cli):
    """Three nodes in `available` to do things with."""
    uuids = []
    for number, address in enumerate(ADDRESSES[:3], 1):
        node = cli.show(f"node create --driver fake-hardware --name n{number} --resource-class metal --no-automated-clean")
        uuids.append(node["uuid"])
        cli.do(f"port create {address} --node {node['uuid']}")
    cli.do("node manage n1 n2 n3 --wait")
    cli.do("node provide n1 n2 n3 --wait 60")
    cli.list("node list --provision-state available", rows=3)
    return uuids


def node_fields(life, cli, uuids):
    life.chapter("fields of a node")
    cli.do(
        "node set n1 --extra rack=5 --extra tags='[1, 2]' --property capabilities=boot_mode:uefi --description 'the first'"
        " --owner alice --lessee bob --shard east --name first --network-data '{}'"
    )
    cli.show(
        "node show first",
        name="first",
        extra={"rack": 5, "tags": [1, 2]},
        properties={"capabilities": "boot_mode:uefi"},
        description="the first",
        owner="alice",
        lessee="bob",
        shard="east",
        automated_clean=False,
    )
    cli.do("node unset first --extra tags --property capabilities --description --owner --lessee --shard")
    cli.show("node show first", extra={"rack": 5}, properties={}, description=None, owner=None, lessee=None, shard=None)
    cli.do("node set first --name n1 --automated-clean")
    cli.show("node show n1", automated_clean=True)
    cli.do("node unset n1 --automated-clean")
    cli.show("node show n1", automated_clean=None)
    cli.refused("node set n1 --name n2", Has("n2"))
    cli.refused("node unset n1 --extra nothing", Has("nothing"))
    cli.do("node set n1 --instance-uuid 1f000000-0000-4000-8000-000000000001 --instance-name web")
    cli.show("node show --instance 1f000000-0000-4000-8000-000000000001", name="n1", instance_name="web")
    cli.refused("node set n1 --instance-uuid 1f000000-0000-4000-8000-000000000002", Has("1f000000"))
    cli.do("node unset n1 --instance-uuid --instance-name")
    cli.show("node show n1", instance_uuid=None, instance_name=None)
    cli.refused("node show --instance 1f000000-0000-4000-8000-000000000001", Has("404"))


def children(life, cli, uuids):
    life.chapter("a node inside a node")
    child = cli.show(f"node create --driver fake-hardware --name child --parent-node {uuids[0]}", parent_node=uuids[0])
    cli.show("node children list n1", children=[child["uuid"]])
    cli.list("node list", rows=3)
    cli.list("node list --include-children", rows=4)
    cli.list(f"node list --parent-node {uuids[0]}", rows=1, name="child")
    cli.do("node delete child")


def ports(life, cli, uuids):
    life.chapter("ports")
    cli.do("node maintenance set n1")
    port = cli.show(
        f"port create {ADDRESSES[3].upper()} --node {uuids[0]} --name spare --pxe-enabled false --extra color=blue"
        " --physical-network net1 --local-link-connection switch_id=00:11:22:33:44:55"
        " --local-link-connection port_id=eth1 --description 'the spare one'",
        address=ADDRESSES[3],
        name="spare",
        pxe_enabled=False,
        physical_network="net1",
        extra={"color": "blue"},
        local_link_connection={"switch_id": "00:11:22:33:44:55", "port_id": "eth1"},
    )
    cli.list(f"port list --node {uuids[0]}", rows=2)
    cli.list("port list --node n1 --long", rows=2)
    cli.list(f"port list --address {ADDRESSES[3]} --fields uuid address", rows=1, uuid=port["uuid"])
    cli.show(f"port show --address {ADDRESSES[3]}", uuid=port["uuid"])
    cli.do(f"port set {port['uuid']} --extra size=2 --pxe-enabled")
    cli.show(f"port show {port['uuid']}", extra={"color": "blue", "size": 2}, pxe_enabled=True)
    cli.do(f"port unset {port['uuid']} --extra color --physical-network")
    cli.show("port show spare", extra={"size": 2}, physical_network=None)
    cli.do(f"port delete {port['uuid']}")
    cli.refused(f"port show {port['uuid']}", Has(port["uuid"]))
    cli.do("node maintenance unset n1")


def port_groups(life, cli, uuids):
    life.chapter("port groups")
    cli.do("node maintenance set n1")
    group = cli.show(
        f"port group create --node {uuids[0]} --name bond0 --address 52:54:00:1f:02:01 --mode 802.3ad"
        " --property miimon=100 --support-standalone-ports",
        name="bond0",
        mode="802.3ad",
        properties={"miimon": 100},
        standalone_ports_supported=True,
    )
    cli.list("port group list", rows=1, name="bond0")
    cli.list("port group list --long", rows=1)
    cli.list(f"port group list --node {uuids[0]}", rows=1)
    cli.do("port group set bond0 --extra a=1 --mode active-backup")
    cli.show("port group show bond0", mode="active-backup", extra={"a": 1})
    cli.show(f"port create 52:54:00:1f:02:02 --node {uuids[0]} --port-group {group['uuid']}", portgroup_uuid=group["uuid"])
    cli.list("port list --port-group bond0", rows=1)
    cli.refused("port group delete bond0", Has("port"))
    port = cli.list("port list --port-group bond0", rows=1)[0]["uuid"]
    cli.do(f"port delete {port}")
    cli.do("port group unset bond0 --extra a --address")
    cli.show("port group show bond0", extra={}, address=None)
    cli.do("port group delete bond0")
    cli.list("port group list", rows=0)
    cli.do("node maintenance unset n1")


def chassis(life, cli, uuids):
    life.chapter("chassis")
    one = cli.show("chassis create --description 'rack one' --extra row=3", uuid=UUID, description="rack one", extra={"row": 3})
    uuid = one["uuid"]
    cli.list("chassis list", rows=1, uuid=uuid, description="rack one")
    cli.list("chassis list --long", rows=1)
    cli.list("chassis list --fields uuid extra", rows=1, extra={"row": 3})
    cli.do(f"node set n1 --chassis-uuid {uuid}")
    cli.list(f"node list --chassis {uuid}", rows=1, name="n1")
    cli.refused(f"chassis delete {uuid}", Has(uuid))
    cli.do("node unset n1 --chassis-uuid")
    cli.do(f"chassis set {uuid} --description 'rack 1' --extra lit=true")
    cli.show(f"chassis show {uuid}", description="rack 1", extra={"row": 3, "lit": True})
    cli.do(f"chassis unset {uuid} --extra row --description")
    cli.do(f"chassis delete {uuid}")
    cli.list("chassis list", rows=0)


def traits(life, cli, _uuids):
    life.chapter("traits")
    cli.do("node add trait n1 CUSTOM_FAST HW_CPU_X86_VMX")
    cli.list("node trait list n1", rows=2)
    cli.show("node show n1", traits=Has("CUSTOM_FAST"))
    cli.do("node remove trait n1 HW_CPU_X86_VMX")
    cli.list("node trait list n1", rows=1, traits="CUSTOM_FAST")
    cli.refused("node remove trait n1 HW_CPU_X86_VMX", ANYTHING)
    cli.refused("node add trait n1 fast", Has("fast"))
    cli.do("node trait remove n1 --all")
    cli.list("node trait list n1", rows=0)


def allocations(life, cli, uuids):
    life.chapter("allocations")
    cli.do("node add trait n2 CUSTOM_FAST")
    allocation = cli.show(
        "allocation create --resource-class metal --trait CUSTOM_FAST --name web --extra a=1 --wait 30",
        name="web",
        state="active",
        node_uuid=uuids[1],
        last_error=None,
        extra={"a": 1},
    )
    cli.show("node show n2", instance_uuid=allocation["uuid"], allocation_uuid=allocation["uuid"])
    cli.list("allocation list", rows=1, name="web", state="active")
    cli.list("allocation list --long", rows=1)
    cli.list("allocation list --node n2", rows=1)
    cli.list("allocation list --resource-class other", rows=0)
    cli.do("allocation set web --name site --extra b=2")
    cli.show("allocation show site", extra={"a": 1, "b": 2})
    cli.do("allocation unset site --extra a")
    cli.show("allocation show site", extra={"b": 2})
    cli.refused("allocation create --resource-class nothing-like-it --name none --wait 30", Has("nothing-like-it"))
    cli.show("allocation show none", state="error", node_uuid=None, last_error=Has("nothing-like-it"))
    cli.do("allocation delete none site")
    cli.list("allocation list", rows=0)
    cli.show("node show n2", instance_uuid=None, allocation_uuid=None)
    cli.show("allocation create --resource-class metal --candidate-node n3 --wait 30", node_uuid=uuids[2])
    one = cli.list("allocation list", rows=1)[0]["uuid"]
    cli.do(f"allocation delete {one}")


def templates(life, cli, _uuids):
    life.chapter("deploy templates")
    steps = json.dumps([{"interface": "deploy", "step": "simulated_pause", "args": {"seconds": 0.1}, "priority": 95}])
    template = cli.show(
        f"deploy template create CUSTOM_SLOW --steps '{steps}' --extra a=1", name="CUSTOM_SLOW", steps=json.loads(steps)
    )
    cli.list("deploy template list", rows=1, name="CUSTOM_SLOW")
    cli.list("deploy template list --long", rows=1)
    cli.do("deploy template set CUSTOM_SLOW --name CUSTOM_SLOWER --extra b=2")
    cli.show(f"deploy template show {template['uuid']}", name="CUSTOM_SLOWER", extra={"a": 1, "b": 2})
    cli.do("deploy template unset CUSTOM_SLOWER --extra a")
    cli.do("deploy template delete CUSTOM_SLOWER")
    cli.list("deploy template list", rows=0)
    cli.refused(f"deploy template create lower --steps '{steps}'", Has("lower"))


def template_of_an_instance(life, cli, uuids):
    life.chapter("an allocation with a trait, and the deploy template of that name at work")
    step = {"interface": "deploy", "step": "simulated_failure", "args": {"message": "by the template"}, "priority": 95}
    cli.do(f"deploy template create CUSTOM_AS_WISHED --steps '{json.dumps([step])}'")
    cli.do("node add trait n2 CUSTOM_AS_WISHED")
    cli.show("allocation create --name wished --resource-class metal --trait CUSTOM_AS_WISHED --wait 30", node_uuid=uuids[1])
    cli.show("node show n2", instance_info={"traits": ["CUSTOM_AS_WISHED"]})
    cli.do(
        "node set n2 --instance-info image_source=http://images.example/system.raw --instance-info image_disk_format=raw"
        " --instance-info image_checksum=5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"
    )
    cli.refused("node deploy n2 --wait 60", Has("deploy failed"))
    cli.show("node show n2", last_error=Has("by the template"))
    step.update(step="simulated_pause", args={"seconds": 0.1})
    cli.do(f"deploy template set CUSTOM_AS_WISHED --steps '{json.dumps([step])}'")
    cli.do("node deploy n2 --wait 60")
    cli.show("node show n2", provision_state="active", last_error=None)
    cli.refused("allocation delete wished", ANYTHING)
    cli.do("node undeploy n2 --wait 60")
    cli.show("node show n2", provision_state="available", instance_uuid=None, allocation_uuid=None, instance_info={})
    cli.list("allocation list", rows=0)
    cli.do("deploy template delete CUSTOM_AS_WISHED")
    cli.do("node trait remove n2 --all")


def runbooks(life, cli, _uuids):
    life.chapter("runbooks")
    steps = json.dumps([{"interface": "deploy", "step": "simulated_pause", "args": {"seconds": 0.1}, "order": 1}])
    runbook = cli.show(f"runbook create --name CUSTOM_BURN_IN --steps '{steps}' --public True", name="CUSTOM_BURN_IN", public=True)
    cli.list("runbook list", rows=1, name="CUSTOM_BURN_IN")
    cli.list("runbook list --long", rows=1)
    cli.do("runbook set CUSTOM_BURN_IN --public False --extra a=1 --description 'once a year'")
    cli.show(f"runbook show {runbook['uuid']}", public=False, extra={"a": 1}, description="once a year")
    cli.do("runbook unset CUSTOM_BURN_IN --extra a")
    cli.do("runbook trait add CUSTOM_BURN_IN CUSTOM_OLD")
    cli.list("runbook trait list CUSTOM_BURN_IN", rows=1)

    life.chapter("a node cleaned by a runbook")
    cli.do("node manage n3 --wait")
    cli.do("node add trait n3 CUSTOM_OLD")
    cli.do("node clean n3 --runbook CUSTOM_BURN_IN --wait 60")
    cli.show("node show n3", provision_state="manageable", last_error=None)
    cli.do("node provide n3 --wait 60")
    cli.do("runbook trait remove CUSTOM_BURN_IN CUSTOM_OLD")
    cli.do("runbook delete CUSTOM_BURN_IN")
    cli.list("runbook list", rows=0)


def volumes(life, cli, uuids):
    life.chapter("volume connectors and targets")
    cli.do("node power off n1")
    cli.wait_for("n1", power_state="power off")
    connector = cli.show(
        f"volume connector create --node {uuids[0]} --type iqn --connector-id iqn.2026-12.example:n1 --extra a=1",
        type="iqn",
        connector_id="iqn.2026-12.example:n1",
        node_uuid=uuids[0],
    )
    target = cli.show(
        f"volume target create --node {uuids[0]} --type iscsi --volume-id v1 --boot-index 0"
        " --property target_iqn=iqn.2026-12.example:disk --property auth_password=secret",
        volume_type="iscsi",
        volume_id="v1",
        boot_index=0,
        properties=OneOf({"target_iqn": "iqn.2026-12.example:disk", "auth_password": "******"}),
    )
    for what, one in [("connector", connector), ("target", target)]:
        uuid = one["uuid"]
        cli.list(f"volume {what} list", rows=1, uuid=uuid)
        cli.list(f"volume {what} list --long", rows=1)
        cli.list(f"volume {what} list --node n1", rows=1)
        cli.do(f"volume {what} set {uuid} --extra b=2")
        cli.show(f"volume {what} show {uuid}", extra=Has("b"))
        cli.do(f"volume {what} unset {uuid} --extra b")
        cli.do(f"volume {what} delete {uuid}")
        cli.list(f"volume {what} list", rows=0)


def inspection_rules(life, cli, _uuids):
    life.chapter("inspection rules")
    actions = json.dumps([{"op": "set-attribute", "args": {"path": "/extra/seen", "value": True}}])
    conditions = json.dumps([{"op": "is-true", "args": {"value": "{inventory[cpu][count]}"}}])
    rule = cli.show(
        f"inspection rule create --description 'mark it' --priority 10 --conditions '{conditions}' --actions '{actions}'",
        description="mark it",
        priority=10,
    )
    uuid = rule["uuid"]
    cli.list("inspection rule list", rows=1, uuid=uuid)
    cli.list("inspection rule list --long", rows=1)
    cli.do(f"inspection rule set {uuid} --description 'mark them' --priority 20")
    cli.show(f"inspection rule show {uuid}", description="mark them", priority=20)
    cli.do(f"inspection rule unset {uuid} --description")
    cli.do(f"inspection rule delete {uuid}")
    rule = cli.show(f"inspection rule create --actions '{actions}'", conditions=[])
    cli.do(f"inspection rule delete {rule['uuid']}")
    cli.list("inspection rule list", rows=0)


def vifs(life, cli, _uuids):
    life.chapter("virtual interfaces")
    vif = "1f000000-0000-4000-8000-00000000000f"
    cli.list("node vif list n1", rows=0)
    cli.do(f"node vif attach n1 {vif}")
    cli.list("node vif list n1", rows=1, id=vif)
    cli.do(f"node vif detach n1 {vif}")
    cli.list("node vif list n1", rows=0)


def from_file(life, cli, folder):
    life.chapter("many things from a file")
    wanted = {
        "chassis": [{"description": "from a file", "nodes": [{"name": "f1", "driver": "fake-hardware"}]}],
        "nodes": [{"name": "f2", "driver": "fake-hardware", "ports": [{"address": "52:54:00:1f:03:01"}]}],
    }
    path = f"{folder}/things.json"
    with open(path, "w", encoding="utf-8") as file:
        json.dump(wanted, file)
    cli.do(f"create {path}")
    cli.show("node show f1", chassis_uuid=UUID)
    cli.show("port show --address 52:54:00:1f:03:01", address="52:54:00:1f:03:01")
    cli.do("node delete f1 f2")


def main():
    import tempfile

    with Life("Everything around a node with baremetal") as life, tempfile.TemporaryDirectory() as folder:
        cli = Cli(life)
        uuids = nodes(cli)
        for part in [
            node_fields,
            children,
            ports,
            port_groups,
            chassis,
            traits,
            allocations,
            templates,
            template_of_an_instance,
            runbooks,
            volumes,
            inspection_rules,
            vifs,
        ]:
            life.part(part, cli, uuids)
        life.part(from_file, cli, folder)


if __name__ == "__main__":
    main()
