"""Every way in which `baremetal` and openstacksdk are told where the API is and who they are."""

import json
import os

import openstack
import yaml
from cli import Cli
from tell import Has, Life

ENDPOINT = os.environ["OS_ENDPOINT"]
KIND = os.environ["OS_AUTH_TYPE"]
USER = os.environ.get("OS_USERNAME")
PASSWORD = os.environ.get("OS_PASSWORD")


def clouds():
    """The forms of clouds.yaml by name."""
    if KIND == "none":
        return {
            "in-auth": {"auth_type": "none", "auth": {"endpoint": ENDPOINT}},
            "beside-auth": {"auth_type": "none", "endpoint": ENDPOINT},
            "override": {"auth_type": "none", "baremetal_endpoint_override": ENDPOINT},
            "with-version": {"auth_type": "none", "auth": {"endpoint": f"{ENDPOINT}/v1"}},
        }
    who = {"username": USER, "password": PASSWORD}
    return {
        "in-auth": {"auth_type": "http_basic", "auth": {"endpoint": ENDPOINT, **who}},
        "override": {"auth_type": "http_basic", "auth": who, "baremetal_endpoint_override": ENDPOINT},
        "with-version": {"auth_type": "http_basic", "auth": {"endpoint": f"{ENDPOINT}/v1", **who}},
    }


def by_variables(life, cli):
    life.chapter("by environment variables")
    for endpoint in [ENDPOINT, f"{ENDPOINT}/", f"{ENDPOINT}/v1", f"{ENDPOINT}/v1/"]:
        os.environ["OS_ENDPOINT"] = endpoint
        print(f"\n# OS_ENDPOINT={endpoint}")
        # With HTTP basic this client would ask for /v1/v1/nodes, which no server has.
        if KIND == "none" or "/v1" not in endpoint:
            cli.list("node list", rows=1, name="here")
        by_library(life, "openstack.connect()")
    os.environ["OS_ENDPOINT"] = ENDPOINT


def by_options(_life, cli):
    cli.life.chapter("by options")
    names = ["OS_ENDPOINT", "OS_AUTH_TYPE", "OS_USERNAME", "OS_PASSWORD"]
    kept = {name: os.environ.pop(name) for name in names if name in os.environ}
    who = f" --os-username {USER} --os-password {PASSWORD}" if KIND == "http_basic" else ""
    cli.list(f"--os-auth-type {KIND} --os-endpoint {ENDPOINT}{who} node list", rows=1, name="here")
    os.environ.update(kept)


def by_file(life, cli, folder):
    life.chapter("by clouds.yaml")
    path = f"{folder}/clouds.yaml"
    with open(path, "w", encoding="utf-8") as file:
        yaml.safe_dump({"clouds": clouds()}, file)
    names = ["OS_ENDPOINT", "OS_AUTH_TYPE", "OS_USERNAME", "OS_PASSWORD"]
    kept = {name: os.environ.pop(name) for name in names if name in os.environ}
    os.environ["OS_CLIENT_CONFIG_FILE"] = path
    for name, form in clouds().items():
        print(f"\n# {name}: {json.dumps({**form, 'auth': '...'})}")
        if KIND == "none" or name != "with-version":
            cli.list(f"--os-cloud {name} node list", rows=1, name="here")
        by_library(life, f"openstack.connect(cloud={name!r})", cloud=name)
    del os.environ["OS_CLIENT_CONFIG_FILE"]
    os.environ.update(kept)


def by_library(life, told, **how):
    life.does(f">>> {told}")
    found = [node.name for node in openstack.connect(**how).baremetal.nodes()]
    life.expect("nodes", found, ["here"])
    found = [driver.name for driver in openstack.connect(**how).baremetal.drivers()]
    life.expect("drivers", found, Has("fake-hardware"))


def strangers(_life, cli):
    cli.life.chapter("strangers")
    os.environ["OS_PASSWORD"] = "not-the-password"
    cli.refused("node list", Has("401"))
    os.environ["OS_USERNAME"] = "nobody"
    cli.refused("node list", Has("401"))
    os.environ.update({"OS_USERNAME": USER, "OS_PASSWORD": PASSWORD})


def main():
    import tempfile

    with Life("How clients are set up") as life, tempfile.TemporaryDirectory() as folder:
        cli = Cli(life)
        cli.show("node create --driver fake-hardware --name here", name="here")
        life.part(by_variables, cli)
        life.part(by_options, cli)
        life.part(by_file, cli, folder)
        if KIND == "http_basic":
            life.part(strangers, cli)


if __name__ == "__main__":
    main()
