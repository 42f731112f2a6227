package lib.answers_test

import data.lib.answers

test_answers_together if {
	answers.any_of({"no", "unclear", "yes"}) == "yes"
	answers.any_of({"no", "unclear"}) == "unclear"
	answers.any_of({"no"}) == "no"
	answers.any_of(set()) == "no"
	answers.all_of({"no", "unclear", "yes"}) == "no"
	answers.all_of({"unclear", "yes"}) == "unclear"
	answers.all_of({"yes"}) == "yes"
	answers.all_of(set()) == "yes"
}
