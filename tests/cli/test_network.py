"""Training on two hosts: network namespaces joined by a virtual cable."""

import os
import subprocess

import program
from test_processes import ENDLESS, PATIENCE, ProcessCase

PORT = 29500


def ip(*words):
    run = subprocess.run(["ip", *words], capture_output=True, text=True)
    if run.returncode != 0:
        raise OSError(f"ip {' '.join(words)}: {run.stderr.strip()}")


class TwoHosts(ProcessCase):
    def setUp(self):
        super().setUp()
        self.hosts = [f"attend-{os.getpid()}-{rank}" for rank in range(2)]
        self.addCleanup(self.remove_hosts)
        try:
            self.make_hosts()
        except OSError as error:
            program.skip(f"no network namespaces, which take root and iproute2: {error}")

    def make_hosts(self):
        for host in self.hosts:
            ip("netns", "add", host)
        ends = [f"at{os.getpid()}-{rank}" for rank in range(2)]
        ip("link", "add", ends[0], "netns", self.hosts[0], "type", "veth", "peer", "name", ends[1],
           "netns", self.hosts[1])
        for rank, (host, end) in enumerate(zip(self.hosts, ends)):
            ip("-n", host, "link", "set", end, "name", "cable")
            ip("-n", host, "address", "add", f"10.77.0.{rank + 1}/24", "dev", "cable")
            for device in ("lo", "cable"):
                ip("-n", host, "link", "set", device, "up")

    def remove_hosts(self):
        for host in self.hosts:
            subprocess.run(["ip", "netns", "delete", host], capture_output=True)

    def start_on(self, rank, *command):
        return self.start(*command, before=["ip", "netns", "exec", self.hosts[rank]], RANK=str(rank),
                          WORLD_SIZE="2", MASTER_ADDR="10.77.0.1", MASTER_PORT=str(PORT),
                          GLOO_SOCKET_IFNAME="cable")

    def test_two_hosts_train_as_one(self):
        self.succeed(*self.command("here", "--processes", 2))
        ranks = [self.start_on(rank, *self.command("there")) for rank in range(2)]
        for rank in ranks:
            error = self.finish(rank)
            self.assertEqual(rank.returncode, 0, error)
        self.assertEqual(self.weights("there"), self.weights("here"))

    def test_a_cable_that_is_cut_ends_both_in_time(self):
        train = self.command("model", "--timeout", PATIENCE, **ENDLESS)
        ranks = [self.start_on(rank, *train) for rank in range(2)]
        self.wait_for_validation(ranks[0])
        ip("-n", self.hosts[1], "link", "set", "cable", "down")
        for rank, process in enumerate(ranks):
            error = self.finish(process)
            self.assertEqual(process.returncode, 1, error)
            self.assertIn(f"rank {rank} of 2: rank {1 - rank} is gone or not answering", error)


if __name__ == "__main__":
    program.main()
