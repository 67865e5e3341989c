#!/usr/bin/env python3
"""Makes instance-types.json: instance-types.py DATE SOURCE < describe-instance-types.json > instance-types.json

Input: an object of instance types by name as DescribeInstanceTypes prints them (as `moto/ec2/resources/instance_types.json` holds them), or the
output of `aws ec2 describe-instance-types`.
Output, one row a type: [vCPUs, MiB, interfaces of the default network card, IPv4 addresses each, arm64, GPUs, nitro, instance store GB].
"""
import json, sys

date, source = sys.argv[1:3]
raw = json.load(sys.stdin)
if "InstanceTypes" in raw:
    raw = {t["InstanceType"]: t for t in raw["InstanceTypes"]}
rows = []
for name, t in sorted(raw.items()):
    # No cluster runs on a Mac.
    if name.startswith("mac"):
        continue
    net = t["NetworkInfo"]
    card = net.get("DefaultNetworkCardIndex", 0)
    cards = [c["MaximumNetworkInterfaces"] for c in net.get("NetworkCards", []) if c["NetworkCardIndex"] == card]
    row = [
        t["VCpuInfo"]["DefaultVCpus"],
        t["MemoryInfo"]["SizeInMiB"],
        cards[0] if cards else net["MaximumNetworkInterfaces"],
        net["Ipv4AddressesPerInterface"],
        int("arm64" in t["ProcessorInfo"]["SupportedArchitectures"]),
        sum(g.get("Count", 0) for g in t.get("GpuInfo", {}).get("Gpus", [])),
        # Bare metal has no hypervisor and counts as nitro for the VPC CNI.
        int(t.get("Hypervisor") == "nitro" or t.get("BareMetal", False)),
        t.get("InstanceStorageInfo", {}).get("TotalSizeInGB", 0),
    ]
    rows.append(f"{json.dumps(name)}:{json.dumps(row, separators=(',', ':'))}")
print('{"date":%s,"source":%s,"types":{\n%s\n}}' % (json.dumps(date), json.dumps(source), ",\n".join(rows)))
