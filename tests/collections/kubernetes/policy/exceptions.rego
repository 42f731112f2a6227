package main

exception contains rules if {
	input.metadata.labels.tier == "lab"
	rules := ["latest", "labels"]
}
