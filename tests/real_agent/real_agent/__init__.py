"""An unmodified ironic-python-agent, on a machine that is one file.

The tests of the conductor start it to have the real thing at the other end of
the wire: its look-up, heartbeats, command API, downloads, checksums and disk
writes are the agent's own code.

    launcher          outside: builds the sandbox and replaces itself by it
    inside            inside: puts the guard up, then starts the agent
    guard             decides about every external command
    disk              the file, behaving like a block device
    hardware_manager  what the agent believes the machine consists of
    machine           the settings they all share, and the exit codes
"""
