"""The policy in the words of other tools: files by name, and what those words cannot say.

    containers   podman, skopeo, CRI-O: policy.json and registries.d
    kyverno      a ClusterPolicy
    cosign       a script of cosign's commands
    notation     trust stores of certificates, and trustpolicy.json
    containerd   an image verifier for containerd's bindir plugin

No tool but builder knows when a policy expires, which version was seen, or what is grandfathered:
what is exported is a copy of today, without keys that are retired, revoked or not in their days.
"""
