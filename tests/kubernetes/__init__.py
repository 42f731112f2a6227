"""The webhook in a real cluster: its manifests, and a run of them against a real kube-apiserver."""
