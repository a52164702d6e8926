"""Lets schemathesis loose on a conductor, with the document the conductor tells of itself.

    tests/openapi/setup
    target/openapi/venv/bin/python tests/openapi/run.py target/debug/upbeat [SECONDS]

It makes requests from the document, good ones and bad ones, and looks at every answer: none may
be a fault of the server, none may have a status or a form that the document does not have. What
it asked and what was wrong with the answer it prints, with a command that asks again.
"""

import collections
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).parent
VERSION = "X-OpenStack-Ironic-API-Version"
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "allow_header_conformance",
)
# As many endpoints should have answered that all went well.
REACHED_MIN = 80
NODES = {
    "11111111-1111-4111-8111-111111111111": {"name": "fuzz~1"},
    "22222222-2222-4222-8222-222222222222": {"name": "fuzz~2", "resource_class": "large"},
    "33333333-3333-4333-8333-333333333333": {"maintenance": True},
    "55555555-5555-4555-8555-555555555555": {},
}
PORTS = {
    "44444444-4444-4444-8444-444444444444": {"name": "port~1", "address": "52:54:00:00:00:01"},
    "66666666-6666-4666-8666-666666666666": {"address": "52:54:00:00:00:02"},
}
# What stands beside nodes and ports: where it is made, and what of. The ones to be removed begin with 9.
STEP = {"interface": "bios", "step": "apply", "args": {}}
NODE = next(iter(NODES))
OTHERS = {
    "chassis": [{}, {}],
    "deploy_templates": [{"name": "CUSTOM_A", "steps": [STEP | {"priority": 1}]}, {"name": "CUSTOM_B", "steps": [STEP | {"priority": 1}]}],
    "runbooks": [{"name": "CUSTOM_A", "steps": [STEP | {"order": 1}]}, {"name": "CUSTOM_B", "steps": [STEP | {"order": 1}]}],
    "inspection_rules": [{"actions": [{"op": "fail", "args": {"msg": "m"}}]}] * 2,
    "allocations": [{"name": "web", "resource_class": "large"}, {"resource_class": "large"}],
    "portgroups": [{"name": "bond0", "node_uuid": NODE}, {"node_uuid": NODE}],
    "volume/connectors": [{"node_uuid": NODE, "type": "iqn", "connector_id": f"iqn.{n}"} for n in (1, 2)],
    "volume/targets": [{"node_uuid": NODE, "volume_type": "iscsi", "volume_id": "v", "boot_index": n} for n in (1, 2)],
}


def ask(url, method="GET", body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {VERSION: "latest", "Content-Type": "application/json"}
    request = urllib.request.Request(url, data=data, method=method, headers=headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read()


def wait_until_ready(url, server):
    deadline = time.monotonic() + 60
    while True:
        if server.poll() is not None:
            sys.exit(f"the conductor ended with {server.returncode}")
        try:
            ask(f"{url}/health/ready")
            return
        except (urllib.error.URLError, ConnectionError):
            if time.monotonic() > deadline:
                sys.exit("the conductor was not ready within a minute")
            time.sleep(0.1)


def enrol(url):
    for uuid, more in NODES.items():
        ask(f"{url}/v1/nodes", "POST", {"uuid": uuid, "driver": "fake-hardware", **more})
    for uuid, more in PORTS.items():
        ask(f"{url}/v1/ports", "POST", {"uuid": uuid, "node_uuid": NODE, **more})
    for number, (place, documents) in enumerate(OTHERS.items()):
        for first, document in zip("79", documents):
            uuid = f"{first * 8}-{first * 4}-4777-8777-{number:012}"
            ask(f"{url}/v1/{place}", "POST", {"uuid": uuid, **document})
    ask(f"{url}/v1/nodes/fuzz~2/states/provision", "PUT", {"target": "manage"})


def search(url, seconds, *options, before=()):
    """One run, with options before and after the command; true if it found nothing."""
    command = [
        str(pathlib.Path(sys.executable).with_name("st")),
        *before,
        "run",
        f"{url}/openapi.json",
        f"--checks={','.join(CHECKS)}",
        f"--max-time={seconds}",
        "--suppress-health-check=all",
        "--warnings=off",
        "--continue-on-failure",
        "--max-failures=20",
        "--request-timeout=20",
        "--no-color",
        *options,
    ]
    with tempfile.TemporaryDirectory() as folder:
        # It may write where it is.
        return subprocess.run(command, cwd=folder, check=False).returncode == 0


def answers_by_status(url):
    """How many answers of each status there were, and how many endpoints answered that all went well."""
    counts, reached = collections.Counter(), set()
    for line in ask(f"{url}/metrics").decode().splitlines():
        labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
        if line.startswith("upbeat_http_requests_total{"):
            counts[labels["code"]] += int(float(line.rsplit(" ", 1)[1]))
            if labels["code"].startswith("2") and labels["method"] != "OPTIONS":
                reached.add((labels["method"], labels["route"]))
    return dict(sorted(counts.items())), len(reached)


def main():
    program = os.path.abspath(sys.argv[1])
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 120
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder:
        log = open(f"{folder}/log", "w+", encoding="utf-8")
        settings = (f"api.listen=127.0.0.1:{port}", f"database.url=sqlite://{folder}/upbeat.db")
        command = [program, "serve", *(f"--set={setting}" for setting in settings)]
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
        try:
            wait_until_ready(url, server)
            enrol(url)
            # Most with all there is and names of what is there; some with any version and any name.
            names = f"--config-file={HERE / 'schemathesis.toml'}"
            latest = f"--header={VERSION}: latest"
            fine = search(url, seconds * 3 // 4, latest, before=[names])
            fine = search(url, seconds // 4) and fine
            if server.poll() is None:
                counts, reached = answers_by_status(url)
                print(f"answers by status: {counts}; endpoints that went well: {reached}")
                if reached < REACHED_MIN:
                    print(f"that are few (at least {REACHED_MIN}): is what schemathesis.toml names still there?")
                    fine = False
            else:
                print(f"the conductor ended with {server.returncode}")
                fine = False
        finally:
            server.terminate()
            server.wait(timeout=60)
        log.seek(0)
        panics = [line for line in log if "panicked" in line]
        print("".join(panics[:5]), end="")
    sys.exit(0 if fine and not panics else 1)


if __name__ == "__main__":
    main()
