"""Everything around a node, by openstacksdk: made, found, listed, changed, removed."""

from sdk import SECONDS_MAX, Sdk
from tell import ANYTHING, UUID, Has, Life, OneOf

ADDRESSES = [f"52:54:00:1f:06:{number:02x}" for number in range(1, 5)]
VIF = "1f000000-0000-4000-8000-00000000000f"


def nodes(life, sdk):
    """Two nodes in `available`."""
    made = []
    for number, address in enumerate(ADDRESSES[:2], 1):
        node = sdk.call("create_node", driver="fake-hardware", name=f"n{number}", resource_class="metal", provision_state="enroll")
        sdk.call("create_port", address=address, node_id=node.id)
        sdk.call("set_node_provision_state", node, "manage", wait=True, timeout=SECONDS_MAX)
        sdk.call("set_node_provision_state", node, "provide", wait=True, timeout=SECONDS_MAX)
        made.append(node)
    sdk.list("nodes", rows=2)
    sdk.list("nodes", details=True, rows=2)
    sdk.list("nodes", provision_state="available", resource_class="metal", associated=False, rows=2)
    sdk.list("nodes", limit=1, rows=2)
    node = sdk.list("nodes", fields=["uuid", "name"], rows=2)[0]
    life.expect("its name", node.name, OneOf("n1", "n2"))
    return made


def node_fields(life, sdk, made):
    life.chapter("fields of a node")
    node = made[0]
    node = sdk.call("update_node", node, extra={"a": 1, "b": {"c": 2}}, description="the first", shard="east")
    sdk.compare(node, extra={"a": 1, "b": {"c": 2}}, description="the first")
    node = sdk.call("update_node", node, extra={"a": 3}, description=None)
    sdk.compare(node, extra={"a": 3}, description=None)
    patch = [{"op": "add", "path": "/extra/d", "value": [1]}, {"op": "remove", "path": "/extra/a"}]
    sdk.compare(sdk.call("patch_node", node, patch), extra={"d": [1]})
    sdk.refused("BadRequestException", Has("nothing"), "patch_node", node, [{"op": "remove", "path": "/extra/nothing"}])


def ports(life, sdk, made):
    life.chapter("ports and port groups")
    node = made[0]
    sdk.call("set_node_maintenance", node)
    group = sdk.make("create_port_group", {"node_id": node.id, "name": "bond0", "mode": "802.3ad"}, name="bond0", mode="802.3ad")
    port = sdk.make(
        "create_port",
        {"address": ADDRESSES[2], "node_id": node.id, "is_pxe_enabled": False, "port_group_id": group.id},
        address=ADDRESSES[2],
        is_pxe_enabled=False,
        port_group_id=group.id,
    )
    sdk.list("ports", details=True, node=node.id, rows=2)
    sdk.list("ports", address=ADDRESSES[2], rows=1)
    sdk.get("find_port", port.id, address=ADDRESSES[2])
    sdk.compare(sdk.call("update_port", port, extra={"x": 1}), extra={"x": 1})
    sdk.compare(sdk.call("patch_port", port, [{"op": "remove", "path": "/extra/x"}]), extra={})
    sdk.list("port_groups", rows=1)
    sdk.list("port_groups", details=True, node=node.id, rows=1)
    sdk.get("find_port_group", "bond0", id=group.id)
    sdk.compare(sdk.call("update_port_group", group, extra={"y": 1}), extra={"y": 1})
    sdk.call("delete_port", port)
    sdk.call("delete_port_group", group)
    sdk.call("unset_node_maintenance", node)


def chassis(life, sdk, made):
    life.chapter("chassis")
    one = sdk.make("create_chassis", {"description": "rack one", "extra": {"row": 3}}, id=UUID, description="rack one")
    sdk.list("chassis", rows=1)
    sdk.list("chassis", details=True, rows=1)
    sdk.get("find_chassis", one.id, description="rack one")
    sdk.compare(sdk.call("update_chassis", one, description="rack 1"), description="rack 1")
    sdk.call("update_node", made[0], chassis_id=one.id)
    sdk.refused("BadRequestException", ANYTHING, "delete_chassis", one)
    sdk.call("update_node", made[0], chassis_id=None)
    sdk.call("delete_chassis", one)
    sdk.list("chassis", rows=0)


def traits(life, sdk, made):
    life.chapter("traits")
    sdk.call("set_node_traits", made[0], ["CUSTOM_A", "CUSTOM_B"])
    sdk.call("add_node_trait", made[0], "CUSTOM_C")
    sdk.call("remove_node_trait", made[0], "CUSTOM_A")
    sdk.get("get_node", made[0].id, traits=OneOf(["CUSTOM_B", "CUSTOM_C"], ["CUSTOM_C", "CUSTOM_B"]))
    sdk.call("set_node_traits", made[0], [])


def allocations(life, sdk, made):
    life.chapter("allocations")
    one = sdk.call("create_allocation", resource_class="metal", name="web", candidate_nodes=[made[1].id])
    one = sdk.call("wait_for_allocation", one, timeout=SECONDS_MAX)
    sdk.compare(one, state="active", node_id=made[1].id)
    sdk.get("get_node", made[1].id, allocation_id=one.id, instance_id=one.id)
    sdk.list("allocations", rows=1)
    sdk.list("allocations", resource_class="other", rows=0)
    sdk.compare(sdk.call("update_allocation", one, name="site"), name="site")
    sdk.get("get_allocation", "site", id=one.id)
    none = sdk.call("create_allocation", resource_class="nothing-like-it")
    sdk.refused("ResourceFailure", Has("nothing-like-it"), "wait_for_allocation", none, timeout=SECONDS_MAX)
    sdk.call("delete_allocation", none)
    sdk.call("delete_allocation", one)
    sdk.list("allocations", rows=0)


def templates(life, sdk, _made):
    life.chapter("deploy templates")
    steps = [{"interface": "deploy", "step": "simulated_pause", "args": {}, "priority": 95}]
    one = sdk.make("create_deploy_template", {"name": "CUSTOM_SLOW", "steps": steps}, name="CUSTOM_SLOW", steps=steps)
    sdk.list("deploy_templates", rows=1)
    sdk.list("deploy_templates", details=True, rows=1)
    sdk.get("get_deploy_template", one.id, name="CUSTOM_SLOW")
    sdk.compare(sdk.call("update_deploy_template", one, name="CUSTOM_SLOWER"), name="CUSTOM_SLOWER")
    sdk.call("delete_deploy_template", one)
    sdk.list("deploy_templates", rows=0)


def runbooks(life, sdk, _made):
    life.chapter("runbooks")
    steps = [{"interface": "deploy", "step": "simulated_pause", "args": {}, "order": 1}]
    one = sdk.make("create_runbook", {"name": "CUSTOM_BURN_IN", "steps": steps}, name="CUSTOM_BURN_IN")
    sdk.list("runbooks", rows=1)
    sdk.list("runbooks", details=True, rows=1)
    sdk.get("get_runbook", one.id, name="CUSTOM_BURN_IN")
    sdk.compare(sdk.call("patch_runbook", one, [{"op": "add", "path": "/extra/a", "value": 1}]), extra={"a": 1})
    sdk.call("delete_runbook", one)
    sdk.list("runbooks", rows=0)


def volumes(life, sdk, made):
    life.chapter("volume connectors and targets")
    node = made[0]
    sdk.call("set_node_power_state", node, "power off", wait=True, timeout=SECONDS_MAX)
    connector = sdk.make(
        "create_volume_connector",
        {"node_id": node.id, "type": "iqn", "connector_id": "iqn.2026-12.example:n1"},
        type="iqn",
        connector_id="iqn.2026-12.example:n1",
    )
    target = sdk.make(
        "create_volume_target",
        {"node_id": node.id, "volume_type": "iscsi", "volume_id": "v1", "boot_index": 0},
        volume_id="v1",
        boot_index=0,
    )
    for what, one in [("volume_connector", connector), ("volume_target", target)]:
        sdk.list(f"{what}s", rows=1)
        sdk.list(f"{what}s", details=True, node=node.id, rows=1)
        sdk.get(f"find_{what}", one.id, id=one.id)
        sdk.compare(sdk.call(f"update_{what}", one, extra={"a": 1}), extra={"a": 1})
        sdk.call(f"delete_{what}", one)
        sdk.list(f"{what}s", rows=0)


def inspection_rules(life, sdk, _made):
    life.chapter("inspection rules")
    given = {
        "description": "mark it",
        "actions": [{"op": "set-attribute", "args": {"path": "/extra/seen", "value": True}}],
        "conditions": [],
        "priority": 10,
    }
    one = sdk.make("create_inspection_rule", given, description="mark it", priority=10)
    sdk.list("inspection_rules", rows=1)
    sdk.get("get_inspection_rule", one.id, description="mark it")
    sdk.call("delete_inspection_rule", one)
    sdk.list("inspection_rules", rows=0)


def vifs(life, sdk, made):
    life.chapter("virtual interfaces")
    sdk.call("attach_vif_to_node", made[0], VIF)
    life.expect("attached", sdk.call("list_node_vifs", made[0]), [VIF])
    sdk.call("detach_vif_from_node", made[0], VIF)
    life.expect("attached", sdk.call("list_node_vifs", made[0]), [])


def hardware(life, sdk, made):
    life.chapter("what is managed from outside")
    node = made[0]
    supported = sdk.call("get_node_supported_boot_devices", node, must=False) or {}
    life.expect("boot devices", supported.get("supported_boot_devices"), Has("pxe"))
    sdk.call("set_node_boot_device", node, "pxe", persistent=True, must=False)
    life.expect("boot device", sdk.call("get_node_boot_device", node), {"boot_device": "pxe", "persistent": True})
    sdk.call("set_node_boot_mode", node, "bios", must=False)
    sdk.call("set_node_secure_boot", node, False, must=False)
    sdk.call("inject_nmi_to_node", node, must=False)
    sdk.call("get_node_console", node, must=False)
    sdk.call("list_node_firmware", node, must=False)
    sdk.call("attach_vmedia_to_node", node, "cdrom", "http://images.example/rescue.iso", must=False)
    sdk.call("detach_vmedia_from_node", node, device_types=["cdrom"], must=False)
    sdk.call("list_node_vendor_passthru", node, must=False)


def conductors_and_drivers(life, sdk, _made):
    life.chapter("conductors and drivers")
    conductor = sdk.list("conductors", rows=1)[0]
    sdk.list("conductors", details=True, rows=1)
    sdk.get("get_conductor", conductor.hostname, alive=True, drivers=Has("fake-hardware"))
    drivers = sdk.list("drivers")
    life.expect("drivers", "fake-hardware" in [driver.name for driver in drivers], True)
    sdk.list("drivers", details=True)
    sdk.get("get_driver", "fake-hardware", default_deploy_interface="direct")
    sdk.call("list_driver_vendor_passthru", "fake-hardware", must=False)


def main():
    with Life("Everything around a node with openstacksdk") as life:
        sdk = Sdk(life)
        made = nodes(life, sdk)
        for part in [
            node_fields,
            ports,
            chassis,
            traits,
            allocations,
            templates,
            runbooks,
            volumes,
            inspection_rules,
            vifs,
            hardware,
            conductors_and_drivers,
        ]:
            life.part(part, sdk, made)


if __name__ == "__main__":
    main()
