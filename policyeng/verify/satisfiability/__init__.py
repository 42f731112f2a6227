"""Whether each class of workloads can pass every policy at once: a witness, or the fewest policies that conflict."""
