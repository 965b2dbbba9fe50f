"""A real node on this machine: containerd, runc, kubelet, kube-proxy and cluster DNS in namespaces of their own."""
