"""The whole life of a node, by openstacksdk."""

import json

from sdk import SECONDS_MAX, Sdk
from tell import ANYTHING, UUID, Has, Life

ADDRESS = "52:54:00:1f:05:01"
IMAGE = "http://images.example/system.raw"
SUM = "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"


def deploy_step(name, **args):
    return {"interface": "deploy", "step": name, "args": args}


class Story:
    """One node and what is done with it."""

    def __init__(self, life):
        self.life = life
        self.sdk = Sdk(life)
        self.node = None

    def verb(self, target, state, **named):
        """Asks for a provision state and waits for it."""
        node = self.sdk.call(
            "set_node_provision_state", self.node, target, wait=True, timeout=SECONDS_MAX, **named
        )
        self.sdk.compare(node, provision_state=state, target_provision_state=None)
        if target != "manage":  # This one begins no work, so the last error stays to be read.
            self.sdk.compare(node, last_error=None)

    def verb_fails(self, target, state, says, **named):
        """The same, for what is bound to fail on its way."""
        self.sdk.refused(
            "ResourceFailure",
            Has(state),
            "set_node_provision_state",
            self.node,
            target,
            wait=True,
            timeout=SECONDS_MAX,
            **named,
        )
        self.seen(provision_state=state, last_error=says)

    def becomes(self, state):
        """Waits until the node is in this state."""
        self.sdk.call("wait_for_nodes_provision_state", [self.node], state, timeout=SECONDS_MAX)

    def seen(self, **wanted):
        return self.sdk.get("get_node", self.node.id, **wanted)

    def enrol(self):
        self.life.chapter("enrol")
        self.node = self.sdk.make(
            "create_node",
            {
                "driver": "fake-hardware",
                "name": "sdk",
                "provision_state": "enroll",
                "resource_class": "baremetal",
                "driver_info": {"username": "admin", "password": "secret"},
                "properties": {"cpu_arch": "x86_64"},
                "inspect_interface": "agent",
                "rescue_interface": "agent",
            },
            id=UUID,
            name="sdk",
            provision_state="enroll",
            driver_info={"username": "admin", "password": "******"},
        )
        self.sdk.make("create_port", {"address": ADDRESS, "node_id": self.node.id}, address=ADDRESS)
        self.sdk.get("find_node", "sdk", id=self.node.id)
        self.sdk.refused("NotFoundException", ANYTHING, "get_node", "nobody")
        self.life.expect("nobody", self.sdk.call("find_node", "nobody"), None)
        self.verb("manage", "manageable")

    def inspect(self):
        self.life.chapter("inspect")
        self.sdk.refused("NotFoundException", ANYTHING, "get_node_inventory", self.node)
        self.verb("inspect", "manageable")
        inventory = self.sdk.call("get_node_inventory", self.node)
        self.life.expect("memory", inventory["inventory"]["memory"]["physical_mb"], 16384)
        self.sdk.list("ports", node=self.node.id, address=ADDRESS, is_pxe_enabled=True, details=True, rows=1)

    def clean(self):
        self.life.chapter("clean by hand")
        wanted = [deploy_step("erase_devices_metadata"), deploy_step("simulated_reboot")]
        self.verb("clean", "manageable", clean_steps=wanted)
        self.life.chapter("a clean step that fails")
        wanted = [deploy_step("simulated_failure", message="the disk is on fire")]
        self.verb_fails("clean", "clean failed", Has("the disk is on fire"), clean_steps=wanted)
        self.seen(is_maintenance=True, fault="clean failure")
        self.sdk.call("unset_node_maintenance", self.node)
        self.verb("manage", "manageable")
        self.life.chapter("abort")
        wanted = [deploy_step("simulated_pause", seconds=3600)]
        self.sdk.call("set_node_provision_state", self.node, "clean", clean_steps=wanted)
        self.becomes("clean wait")
        self.sdk.call("set_node_provision_state", self.node, "abort")
        self.sdk.refused(
            "ResourceFailure", Has("abort"), "wait_for_nodes_provision_state", [self.node], "manageable", timeout=SECONDS_MAX
        )
        self.verb("manage", "manageable")

    def provide(self):
        self.life.chapter("provide")
        self.verb("provide", "available")

    def deploy(self):
        self.life.chapter("deploy")
        self.sdk.refused("ValidationException", Has("deploy"), "validate_node", self.node)
        info = {"image_source": IMAGE, "image_checksum": SUM, "image_disk_format": "raw"}
        node = self.sdk.call("update_node", self.node, instance_info=info, instance_id=self.node.id)
        self.life.expect("instance_info", node.instance_info, info)
        results = self.sdk.call("validate_node", self.node, required=("boot", "deploy", "power"))
        self.life.expect("deploy is valid", results["deploy"].result, True)
        drive = {"meta_data": {"hostname": "sdk"}, "user_data": {"packages": ["vim"]}}
        self.verb("active", "active", config_drive=drive)
        self.seen(power_state="power on", instance_id=self.node.id)
        self.sdk.refused("ConflictException", Has(self.node.id), "delete_node", self.node)
        self.sdk.refused("BadRequestException", ANYTHING, "set_node_provision_state", self.node, "provide")
        self.life.chapter("rebuild")
        self.verb("rebuild", "active")

    def power(self):
        self.life.chapter("power")
        for target, state in [("power off", "power off"), ("power on", "power on"), ("rebooting", "power on")]:
            self.sdk.call("set_node_power_state", self.node, target, wait=True, timeout=SECONDS_MAX)
            self.sdk.call("wait_for_node_power_state", self.node, state, timeout=SECONDS_MAX)
        self.sdk.call("wait_for_node_reservation", self.node, timeout=SECONDS_MAX)

    def maintain(self):
        self.life.chapter("maintenance")
        node = self.sdk.call("set_node_maintenance", self.node, reason="new fans")
        self.seen(is_maintenance=True, maintenance_reason="new fans")
        self.sdk.list("nodes", is_maintenance=True, rows=1)
        self.sdk.call("unset_node_maintenance", node)
        self.seen(is_maintenance=False, maintenance_reason=None)
        self.sdk.call("update_node", self.node, is_maintenance=True, maintenance_reason="again")
        self.seen(is_maintenance=True, maintenance_reason="again")
        self.sdk.call("update_node", self.node.id, is_maintenance=False)
        self.seen(is_maintenance=False)

    def rescue(self):
        self.life.chapter("rescue and back")
        self.verb("rescue", "rescue", rescue_password="open-sesame")
        node = self.seen()
        self.life.expect("no password in sight", "open-sesame" in json.dumps(node.to_dict(), default=str), False)
        self.sdk.call("set_node_provision_state", self.node, "unrescue")
        self.becomes("active")
        self.seen(last_error=None, power_state="power on")

    def service(self):
        self.life.chapter("service")
        wanted = [deploy_step("simulated_pause", seconds=0.1), deploy_step("simulated_reboot")]
        self.life.does(f">>> node.set_provision_state(session, 'service', service_steps={wanted})")
        self.node.set_provision_state(self.sdk.api, "service", service_steps=wanted)
        self.becomes("active")
        self.seen(last_error=None)

    def end(self):
        self.life.chapter("undeploy and delete")
        self.verb("deleted", "available")
        self.seen(instance_id=None, instance_info={})
        self.sdk.call("delete_node", self.node)
        self.sdk.refused("NotFoundException", ANYTHING, "get_node", self.node.id)
        self.sdk.refused("NotFoundException", ANYTHING, "delete_node", self.node.id, ignore_missing=False)
        self.sdk.list("nodes", rows=0)

    def adopt(self):
        self.life.chapter("adopt")
        self.node = self.sdk.call("create_node", driver="fake-hardware", name="adopted", provision_state="manageable")
        self.sdk.call(
            "update_node", self.node, instance_info={"image_source": IMAGE, "image_checksum": SUM}
        )
        self.verb("adopt", "active")
        self.sdk.call("set_node_maintenance", self.node)
        self.sdk.call("delete_node", self.node)

    def at_once(self):
        self.life.chapter("registered and taken back in one call each, as Ansible does it")
        self.node = self.sdk.call(
            "register_machine",
            [{"address": ADDRESS}],
            wait=True,
            timeout=SECONDS_MAX,
            driver="fake-hardware",
            name="at-once",
        )
        self.seen(provision_state="available", name="at-once")
        self.sdk.list("list_nics_for_machine", self.node.id, rows=1)
        self.sdk.call("unregister_machine", [{"address": ADDRESS}], self.node.id)
        self.sdk.list("nodes", rows=0)
        self.life.chapter("born available, as old clients have it")
        self.node = self.sdk.call("create_node", driver="fake-hardware", name="old", provision_state="available")
        self.seen(provision_state="available")
        self.sdk.call("delete_node", self.node)


def main():
    with Life("The whole life of a node with openstacksdk") as life:
        story = Story(life)
        for part in [
            story.enrol,
            story.inspect,
            story.clean,
            story.provide,
            story.deploy,
            story.power,
            story.maintain,
            story.rescue,
            story.service,
            story.end,
            story.adopt,
            story.at_once,
        ]:
            part()


if __name__ == "__main__":
    main()
