# METADATA
# description: Answers to whether something holds - `yes`, `no`, or `unclear` where a value cannot be read - put together.
package lib.answers

# any_of(answers), all_of(answers): the answers of a set together.
any_of(answers) := "yes" if {
	"yes" in answers
} else := "unclear" if {
	"unclear" in answers
} else := "no"

all_of(answers) := "no" if {
	"no" in answers
} else := "unclear" if {
	"unclear" in answers
} else := "yes"
