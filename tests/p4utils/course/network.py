"""A network in the form of p4-utils' courses: two routers, two hosts, a controller."""

from p4utils.mininetlib.network_API import NetworkAPI

net = NetworkAPI()
net.setLogLevel("info")
net.addP4Switch("s1", loopback="1.1.1.1")
net.addP4Switch("s2")
net.setP4SourceAll("router.p4")
net.addHost("h1")
net.addHost("h2")
net.addLink("h1", "s1")
net.addLink("s1", "s2", weight=3)
net.addLink("h2", "s2")
net.setBwAll(100)
net.setDelay("s1", "s2", 2)
net.l3()
net.execScript("python controller.py", out_file="controller.log", reboot=True)
net.addTask("h1", "touch task_has_run", start=0.2)
net.enableLogAll()
net.enableCli()
net.startNetwork()
