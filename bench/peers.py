"""The programs that are measured: name: what each needs, and a line of shell for each kind of workload that it takes part in.

{src} is a file, or a tree whose contents go to {dst}, which is not there yet. A command that does not name {dst}, itself or
within an address, leaves nothing that could be compared. In `memory`, {size} zeros go to a bit bucket; in `fetch`, {src} does.
"""

import re

AES = "-c aes128-gcm@openssh.com"


def carrack(needs, options, target, fetched, bucket):
    run = f"{{carrack}} --no-progress {options}"
    return needs, {"file": f"{run} {{src}} {target}", "tree": f"{run} {{src}}/ {target}", "fetch": f"{run} {fetched} null:",
                   "memory": f"{run} zero:{{size}} {bucket}"}


def carrack_ssh(options):
    return carrack(["sshd"], f"-e '{{ssh}}' {options}", "{host}:{dst}", "{host}:{src}", "{host}:/dev/null")


def carrack_node(options):
    return carrack(["node"], f"--token-file {{token}} {options}", "{node_dst}", "{node_src}", "{node_null}")


def scp(cipher):
    run = f"scp -q -F {{ssh_config}} {cipher}"
    return ["sshd", "scp"], {"file": f"{run} {{src}} {{host}}:{{dst}}", "tree": f"{run} -r {{src}} {{host}}:{{dst}}"}


def rsync(needs, options, to):
    return ["rsync", *needs], {"file": f"rsync -a {options} {{src}} {to}", "tree": f"rsync -a {options} {{src}}/ {to}/"}


def pipe(cipher):
    tree = f"tar -C {{src}} -cf - . | {{ssh}} {cipher} {{host}} 'mkdir {{dst}} && tar -C {{dst}} -xf -'"
    memory = f"head -c {{size}} /dev/zero | {{ssh}} {cipher} {{host}} 'cat > /dev/null'"
    return ["sshd", "tar"], {"tree": tree, "fetch": f"{{ssh}} {cipher} {{host}} 'cat {{src}}' > /dev/null", "memory": memory}


def gridftp(options):
    run = f"globus-url-copy -fast {options}"
    return ["gridftp"], {
        "file": f"{run} file://{{src}} {{gridftp_dst}}", "tree": f"{run} -r -cd -cc 4 -pp file://{{src}}/ {{gridftp_dst}}/",
        "fetch": f"{run} {{gridftp}}{{src}} file:///dev/null", "memory": f"{run} -off 0 -len {{size}} file:///dev/zero {{gridftp}}/dev/null"}


def xrdcp(options):
    return ["xrootd"], {"file": f"xrdcp -f -N -s {options} {{src}} {{xrootd_dst}}", "fetch": f"xrdcp -f -N -s {options} {{xrootd}}{{src}} /dev/null"}


def rclone(options):
    to = "--sftp-host {host} --sftp-port {port} --sftp-user {user} --sftp-key-file {user_key} --sftp-known-hosts-file {known_hosts}"
    run = f"rclone --config /dev/null -q {to} {options}"
    return ["sshd", "rclone"], {"file": f"{run} copyto {{src}} :sftp:{{dst}}", "tree": f"{run} --transfers 16 copy {{src}} :sftp:{{dst}}"}


def bbcp(streams):
    login = "{ssh} -l %U %H bbcp"
    run = f"bbcp -F -s {streams} -S '{login}' -T '{login}'"
    return ["sshd", "bbcp"], {"file": f"{run} {{src}} {{host}}:{{dst}}", "tree": f"mkdir {{dst}} && {run} -r {{src}}/ {{host}}:{{dst}}"}


def iperf3(streams):
    return ["iperf3"], {"memory": f"iperf3 -c {{host}} -p {{iperf3_port}} -P {streams} -n {{size}} -J"}


def fio(how):
    return ["fio"], {"disk": f"fio --name=disk --direct=1 --ioengine=libaio --iodepth=16 --bs=1M {how}"}


PEERS = {
    "cp": ([], {"file": "cp {src} {dst}", "tree": "cp -r {src} {dst}", "fetch": "cat {src} > /dev/null"}),
    "dd-read": ([], {"disk": "dd if={src} of=/dev/null bs=4M iflag=direct status=none"}),
    "dd-copy": ([], {"disk": "dd if={src} of={dst} bs=4M iflag=direct oflag=direct status=none"}),
    "fio-read": fio("--rw=read --readonly --filename={src}"),
    "fio-write": fio("--rw=write --refill_buffers --size={size} --filename={scratch}"),
    "fio-both": fio("--rw=read --filename={src} --name=other --rw=write --refill_buffers --size={size} --filename={scratch}"),
    "ssh-true": (["sshd"], {"login": "{ssh} {host} true"}),
    "iperf3": iperf3(1),
    "iperf3-P4": iperf3(4),
    "iperf3-P16": iperf3(16),
    "carrack-ssh": carrack_ssh(""),
    "carrack-ssh-unverified": carrack_ssh("--digest none --verify none"),
    "carrack-node": carrack_node(""),
    "carrack-node-unverified": carrack_node("--digest none --verify none"),
    "carrack-node-disk": carrack_node("--verify disk"),
    "carrack-node-xxh128": carrack_node("--digest xxh128"),
    "carrack-node-clear": carrack_node("--encrypt none"),
    "carrack-node-clear-xxh128": carrack_node("--encrypt none --digest xxh128"),
    "carrack-node-unseen": carrack_node("--encrypt none --digest none --verify none"),
    "scp": scp(""),
    "scp-aes128gcm": scp(AES),
    "rsync-ssh": rsync(["sshd"], "-e '{ssh}'", "{host}:{dst}"),
    "rsync-ssh-aes128gcm": rsync(["sshd"], f"-e '{{ssh}} {AES}'", "{host}:{dst}"),
    "rsync-daemon": rsync(["rsyncd"], "", "{rsyncd_dst}"),
    "pipe-ssh": pipe(""),
    "pipe-ssh-aes128gcm": pipe(AES),
    "gridftp-p1": gridftp("-p 1"),
    "gridftp-p4": gridftp("-p 4"),
    "gridftp-p16": gridftp("-p 16"),
    "gridftp-p4-checksum": gridftp("-p 4 -verify-checksum"),
    "gridftp-cc4": (["gridftp"], {"tree": gridftp("")[1]["tree"]}),
    "xrdcp-S1": xrdcp("-S 1"),
    "xrdcp-S4": xrdcp("-S 4"),
    "xrdcp-S4-checksum": xrdcp("-S 4 --cksum crc32c:source"),
    "xrdcp-parallel4": (["xrootd"], {"tree": "mkdir -m 777 {dst} && xrdcp -r -f -N -s --parallel 4 {src} {xrootd_dst}/"}),
    "rclone-sftp": rclone(""),
    "rclone-sftp-unchecked": rclone("--sftp-disable-hashcheck"),
    "bbcp-s4": bbcp(4),
}


def arrived(said):
    """The bytes that reached the receiver, by the word of iperf3, which ends while some of them are still on their way."""
    found = re.search(r'"sum_received":\s*\{[^{}]*"bytes":\s*(\d+)', said)
    return int(found[1]) if found else None
