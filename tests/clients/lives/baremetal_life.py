"""The whole life of a node, typed with `baremetal`."""

import json
import os
import tempfile

from cli import Cli
from tell import ANYTHING, TIME, UUID, Has, Life

ADDRESS = "52:54:00:1f:00:01"
IMAGE = "http://images.example/system.raw"
OTHER_IMAGE = "http://images.example/other.raw"
SUM = "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"


def steps(*steps):
    """Steps as an argument of a command line."""
    return "'" + json.dumps(list(steps)) + "'"


def deploy_step(name, **args):
    return {"interface": "deploy", "step": name, "args": args}


def enrol(life, cli):
    life.chapter("enrol")
    node = cli.show(
        "node create --driver fake-hardware --name life --resource-class baremetal --property cpu_arch=x86_64"
        " --property memory_mb=16384 --driver-info username=admin --driver-info password=secret --extra rack=5"
        " --inspect-interface agent --rescue-interface agent",
        uuid=UUID,
        name="life",
        provision_state="enroll",
        power_state=None,
        driver="fake-hardware",
        resource_class="baremetal",
        extra={"rack": 5},
        driver_info={"username": "admin", "password": "******"},
        created_at=TIME,
        deploy_interface="direct",
    )
    uuid = node["uuid"]
    cli.list("node list", rows=1, uuid=uuid, name="life", provision_state="enroll", maintenance=False)
    cli.show(f"port create {ADDRESS} --node {uuid}", address=ADDRESS, node_uuid=uuid, pxe_enabled=True)
    cli.refused("node create --driver fake-hardware --name life", Has("life"))
    cli.refused(f"port create {ADDRESS} --node {uuid}", Has(ADDRESS))
    cli.refused("node provide life", Has("provide"))
    cli.do("node manage life --wait")
    cli.show("node show life", provision_state="manageable", target_provision_state=None, power_state="power off")
    return uuid


def inspect(life, cli, uuid):
    life.chapter("inspect")
    cli.refused("node inventory save life", Has("404"))
    cli.do("node inspect life --wait 60")
    cli.show(
        "node show life",
        provision_state="manageable",
        last_error=None,
        inspection_finished_at=TIME,
        properties=Has("cpu_arch"),
        power_state="power off",
    )
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "inventory.json")
        cli.do(f"node inventory save life --file {file}")
        with open(file, encoding="utf-8") as saved:
            inventory = json.load(saved)
    life.expect("memory", inventory["inventory"]["memory"]["physical_mb"], 16384)
    life.expect("address", inventory["inventory"]["interfaces"][0]["mac_address"], ADDRESS)
    table = cli.list(f"port list --node {uuid} --fields address pxe_enabled")
    booting = {row["address"]: row["pxe_enabled"] for row in table}
    life.expect("it boots from the known one", booting.pop(ADDRESS, None), True)
    life.expect("and from no other that may have been found", True in booting.values(), False)


def clean(life, cli):
    life.chapter("clean by hand")
    cli.do(f"node clean life --wait 60 --clean-steps {steps(deploy_step('erase_devices_metadata'))}")
    cli.show("node show life", provision_state="manageable", clean_step={}, last_error=None)
    life.chapter("a clean step that reboots the machine, then another")
    wanted = steps(deploy_step("simulated_reboot"), deploy_step("simulated_pause", seconds=0.1))
    cli.do(f"node clean life --wait 60 --clean-steps {wanted}")
    cli.show("node show life", provision_state="manageable", last_error=None)

    life.chapter("a clean step that fails")
    wanted = steps(deploy_step("simulated_failure", message="the disk is on fire"))
    cli.refused(f"node clean life --wait 60 --clean-steps {wanted}", Has("clean failed"))
    cli.show(
        "node show life",
        provision_state="clean failed",
        target_provision_state="manageable",
        maintenance=True,
        fault="clean failure",
        last_error=Has("the disk is on fire"),
    )
    cli.do("node maintenance unset life")
    cli.show("node show life", maintenance=False, fault=None, maintenance_reason=None)
    cli.do("node manage life --wait")

    life.chapter("abort")
    wanted = steps(deploy_step("simulated_pause", seconds=3600))
    cli.do(f"node clean life --clean-steps {wanted}")
    cli.wait_for("life", provision_state="clean wait")
    cli.do("node abort life")
    cli.wait_for("life", provision_state="clean failed")
    cli.show("node show life", last_error=Has("abort"), maintenance=False)
    cli.do("node manage life --wait")
    cli.refused("node clean life --clean-steps '[]'", ANYTHING)

    life.chapter("hold in the middle of cleaning, go on; then hold and abort")
    wanted = steps({"interface": "deploy", "step": "hold"}, deploy_step("simulated_pause", seconds=0.1))
    cli.do(f"node clean life --clean-steps {wanted}")
    cli.wait_for("life", provision_state="clean hold")
    cli.do("node unhold life")
    cli.wait_for("life", provision_state="manageable")
    cli.do(f"node clean life --clean-steps {wanted}")
    cli.wait_for("life", provision_state="clean hold")
    cli.do("node abort life")
    cli.wait_for("life", provision_state="clean failed", maintenance=False)
    cli.do("node manage life --wait")

    life.chapter("a clean step of the hardware, without a ramdisk; and one that nobody has")
    wanted = steps({"interface": "bios", "step": "factory_reset"})
    cli.do(f"node clean life --wait 60 --disable-ramdisk --clean-steps {wanted}")
    cli.show("node show life", provision_state="manageable", last_error=None)
    cli.refused(f"node clean life --wait 60 --clean-steps {steps(deploy_step('no_such_step'))}", Has("clean failed"))
    cli.show("node show life", last_error=Has("no_such_step"))
    cli.do("node maintenance unset life")
    cli.do("node manage life --wait")


def provide(life, cli):
    life.chapter("provide, which cleans by itself")
    cli.do("node provide life --wait 60")
    cli.show("node show life", provision_state="available", target_provision_state=None, last_error=None)


def deploy(life, cli):
    life.chapter("deploy steps of one's own, in vain")
    cli.do(
        f"node set life --instance-info image_source={IMAGE} --instance-info image_checksum={SUM}"
        " --instance-info image_disk_format=raw"
    )
    failing = steps({**deploy_step("simulated_failure", message="not today"), "priority": 95})
    cli.refused(f"node deploy life --wait 60 --deploy-steps {failing}", Has("deploy failed"))
    cli.show(
        "node show life",
        provision_state="deploy failed",
        target_provision_state="active",
        last_error=Has("not today"),
        maintenance=False,
    )
    life.chapter("abort a deploy")
    lasting = steps({**deploy_step("simulated_pause", seconds=3600), "priority": 95})
    cli.do(f"node deploy life --deploy-steps {lasting}")
    cli.wait_for("life", provision_state="wait call-back", deploy_step=Has("step"))
    cli.do("node abort life")
    cli.wait_for("life", provision_state="deploy failed", last_error=Has("abort"))

    life.chapter("deploy")
    table = cli.list("node validate life")
    results = {row["interface"]: row["result"] for row in table}
    life.expect("boot is valid", results.get("boot"), True)
    life.expect("deploy is valid", results.get("deploy"), True)
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as drive:
        json.dump({"meta_data": {"hostname": "life"}, "user_data": "#!/bin/sh\ntrue\n"}, drive)
    cli.do(f"node deploy life --wait 60 --config-drive {drive.name}")
    os.unlink(drive.name)
    cli.show(
        "node show life",
        provision_state="active",
        power_state="power on",
        deploy_step={},
        last_error=None,
        instance_info=Has("image_source"),
    )
    cli.refused("node delete life", Has("life"))
    cli.refused("node deploy life", ANYTHING)

    life.chapter("rebuild")
    cli.do(f"node set life --instance-info image_source={OTHER_IMAGE}")
    cli.do("node rebuild life --wait 60")
    node = cli.show("node show life", provision_state="active", last_error=None)
    life.expect("the image", node["instance_info"]["image_source"], OTHER_IMAGE)


def rescue(life, cli):
    life.chapter("rescue and back")
    cli.do("node rescue life --rescue-password open-sesame --wait 60")
    node = cli.show("node show life", provision_state="rescue", power_state="power on", last_error=None)
    life.expect("no password in sight", "open-sesame" in json.dumps(node), False)
    cli.do("node unrescue life --wait 60")
    cli.show("node show life", provision_state="active", last_error=None)


def service(life, cli):
    life.chapter("service")
    wanted = steps(deploy_step("simulated_pause", seconds=0.1), deploy_step("simulated_reboot"))
    cli.do(f"node service life --wait 60 --service-steps {wanted}")
    cli.show("node show life", provision_state="active", service_step={}, last_error=None, power_state="power on")
    wanted = steps(deploy_step("simulated_failure", message="no such luck"))
    cli.refused(f"node service life --wait 60 --service-steps {wanted}", Has("service failed"))
    cli.show("node show life", provision_state="service failed", last_error=Has("no such luck"))
    cli.do("node maintenance unset life")
    cli.do("node abort life")
    cli.wait_for("life", provision_state="active")
    life.chapter("abort a service")
    lasting = steps(deploy_step("simulated_pause", seconds=3600))
    cli.do(f"node service life --service-steps {lasting}")
    cli.wait_for("life", provision_state="service wait")
    cli.do("node abort life")
    cli.wait_for("life", provision_state="active", last_error=Has("abort"))


def hold(life, cli):
    life.chapter("hold and go on")
    wanted = steps({"interface": "power", "step": "hold"}, deploy_step("simulated_pause", seconds=0.1))
    cli.do(f"node service life --service-steps {wanted}")
    cli.wait_for("life", provision_state="service hold")
    cli.do("node unhold life")
    cli.wait_for("life", provision_state="active")
    cli.show("node show life", service_step={}, last_error=None)


def power(life, cli):
    life.chapter("power")
    for typed, state in [
        ("power off", "power off"),
        ("power on", "power on"),
        ("reboot", "power on"),
        ("reboot --soft", "power on"),
        ("power off --soft --power-timeout 30", "power off"),
        ("power on", "power on"),
    ]:
        cli.do(f"node {typed} life")
        cli.wait_for("life", power_state=state, target_power_state=None)


def protect(life, cli):
    life.chapter("protect")
    cli.do("node set life --protected --protected-reason 'holds the family photos'")
    cli.show("node show life", protected=True, protected_reason="holds the family photos")
    cli.refused("node undeploy life", Has("protected"))
    cli.do("node unset life --protected")
    cli.show("node show life", protected=False, protected_reason=None)


def undeploy(life, cli):
    life.chapter("undeploy")
    cli.do("node undeploy life --wait 60")
    cli.show(
        "node show life",
        provision_state="available",
        instance_info={},
        instance_uuid=None,
        last_error=None,
    )


def nobody_answers(life, cli):
    life.chapter("inspect a machine that nobody can tell apart, and abort")
    cli.show("node create --driver fake-hardware --name stranger --inspect-interface agent", name="stranger")
    cli.do("node manage stranger --wait")
    cli.do("node inspect stranger")
    cli.wait_for("stranger", provision_state="inspect wait", target_provision_state="manageable")
    cli.do("node abort stranger")
    cli.wait_for("stranger", provision_state="inspect failed", last_error=Has("aborted"))
    cli.do("node manage stranger --wait")
    cli.do("node delete stranger")


def retire(life, cli):
    life.chapter("retire and delete")
    cli.do("node manage life --wait")
    cli.do("node set life --retired --retired-reason 'too old'")
    cli.refused("node provide life", Has("retired"))
    cli.do("node maintenance set life --reason 'to be carried away'")
    cli.show("node show life", maintenance=True, maintenance_reason="to be carried away", retired=True)
    cli.list("node list --maintenance", rows=1, name="life")
    cli.do("node delete life")
    cli.list("node list", rows=0)
    cli.refused("node show life", Has("life"))
    cli.refused("node delete life", Has("life"))


def adopt(life, cli):
    life.chapter("adopt a machine that others have deployed")
    node = cli.show("node create --driver fake-hardware --name adopted", provision_state="enroll")
    cli.show(f"port create 52:54:00:1f:00:02 --node {node['uuid']}", address="52:54:00:1f:00:02")
    cli.do("node manage adopted --wait")
    cli.do(f"node set adopted --instance-info image_source={IMAGE} --instance-info image_checksum={SUM}")
    cli.do("node adopt adopted --wait 60")
    cli.show("node show adopted", provision_state="active", last_error=None)
    cli.do("node maintenance set adopted")
    cli.do("node delete adopted")
    cli.list("node list", rows=0)


def main():
    with Life("The whole life of a node with baremetal") as life:
        cli = Cli(life)
        uuid = enrol(life, cli)
        inspect(life, cli, uuid)
        nobody_answers(life, cli)
        clean(life, cli)
        provide(life, cli)
        deploy(life, cli)
        power(life, cli)
        protect(life, cli)
        rescue(life, cli)
        service(life, cli)
        hold(life, cli)
        undeploy(life, cli)
        retire(life, cli)
        adopt(life, cli)


if __name__ == "__main__":
    main()
