package lib.diagnostics_test

import data.lib.diagnostics

setting(properties) := {"id": "/w/providers/Microsoft.Insights/diagnosticSettings/s", "properties": properties}

test_settings_of_exactly_a_resource if {
	found := {"id": "/W/providers/Microsoft.Insights/diagnosticSettings/s"}
	snapshot := {
		"by_extended": {"/w": {"microsoft.insights/diagnosticsettings": ["s"]}},
		"by_id": {"s": found},
	}
	diagnostics.of({"id": "/W/"}, snapshot) == [found]
	diagnostics.of({"id": "/w/computes/c"}, snapshot) == []
	diagnostics.names([found]) == [found.id]
}

test_what_is_on if {
	every each in [
		[{"enabled": true}, "yes"],
		[{"enabled": " TRUE "}, "yes"],
		[{"enabled": false}, "no"],
		[{"enabled": null}, "no"],
		[{"enabled": ""}, "no"],
		[{}, "no"],
		[{"enabled": 1}, "unclear"],
		[{"enabled": "on"}, "unclear"],
		[null, "unclear"],
		["text", "unclear"],
	] {
		diagnostics.is_on(each[0]) == each[1]
	}
}

test_logs_and_metrics if {
	diagnostics.logs(setting({})) == []
	diagnostics.logs(setting({"logs": null})) == []
	diagnostics.logs(setting({"logs": [1]})) == [1]
	diagnostics.logs(setting({"logs": {}})) == [null]
	diagnostics.logs(setting("text")) == [null]
	diagnostics.logs({"id": "/s"}) == []
	diagnostics.has_log(setting({"logs": [{"enabled": false}, {"enabled": true}]})) == "yes"
	diagnostics.has_metric(setting({"metrics": "all"})) == "unclear"
	diagnostics.has_metric(setting({"logs": [{"enabled": true}]})) == "no"
}

group(name) := setting({"logs": [{"categoryGroup": name, "enabled": true}]})

category(name) := setting({"logs": [{"category": name, "enabled": true}]})

test_groups_and_categories if {
	diagnostics.has_group(group("AUDIT"), {"audit"}) == "yes"
	diagnostics.has_group(group("audits"), {"audit"}) == "no"
	diagnostics.has_group(group(7), {"audit"}) == "unclear"
	diagnostics.has_group(setting({"logs": [null]}), {"audit"}) == "unclear"
	diagnostics.has_category(category("runevent"), "RunEvent") == "yes"
	diagnostics.has_category(category("x"), "RunEvent") == "no"
	diagnostics.has_category(group("allLogs"), "RunEvent") == "yes"
	diagnostics.has_category(group("audit"), "RunEvent") == "no"
	diagnostics.has_logs(category("a"), {"alllogs"}, ["a"]) == "yes"
	diagnostics.has_logs(category("a"), {"alllogs"}, ["a", "b"]) == "no"
	diagnostics.has_logs(category("a"), {"alllogs"}, []) == "no"
	diagnostics.has_logs(group("audit"), {"audit"}, []) == "yes"
}

test_sinks if {
	stated := setting({"workspaceId": "/A/b", "storageAccountId": 7})
	diagnostics.goes_to(stated, {"workspaceId": "/a/B/"}) == "yes"
	diagnostics.goes_to(stated, {"workspaceId": "/a/c"}) == "no"
	diagnostics.goes_to(stated, {"workspaceId": "", "eventHubName": " "}) == "yes"
	diagnostics.goes_to(stated, {"eventHubName": "hub"}) == "no"
	diagnostics.goes_to(stated, {"storageAccountId": "/s"}) == "unclear"
	diagnostics.goes_to(setting("text"), {"workspaceId": "/a"}) == "unclear"
}

test_what_is_kept if {
	every each in [
		[null, "yes"],
		[{"days": 1}, "yes"],
		[{"enabled": "false", "days": 1}, "yes"],
		[{"enabled": true, "days": 0}, "yes"],
		[{"enabled": true, "days": 30}, "yes"],
		[{"enabled": true, "days": "29"}, "no"],
		[{"enabled": true}, "unclear"],
		[{"enabled": "on", "days": 30}, "unclear"],
		["text", "unclear"],
	] {
		entry := {"retentionPolicy": each[0]}
		diagnostics.is_kept(setting({"storageAccountId": "/s"}), entry, 30) == each[1]
		diagnostics.has_sink(setting({"storageAccountId": "/s"}), entry, 30) == each[1]
		diagnostics.is_kept(setting({"storageAccountId": " "}), entry, 30) == "yes"
		diagnostics.has_sink(setting({"storageAccountId": " "}), entry, 30) == "no"
		diagnostics.has_sink(setting({"storageAccountId": "/s", "workspaceId": "/w"}), entry, 30) == "yes"
	}
}

test_what_cannot_be_read_is_not_kept if {
	short := {"retentionPolicy": {"enabled": true, "days": 1}}
	diagnostics.is_kept(setting({"storageAccountId": 7}), short, 30) == "unclear"
	diagnostics.is_kept(setting("text"), short, 30) == "unclear"
	diagnostics.is_kept(setting({"storageAccountId": "/s"}), null, 30) == "unclear"
	diagnostics.has_sink(setting({"eventHubAuthorizationRuleId": 7}), {}, 30) == "unclear"
}

test_doubts if {
	diagnostics.doubts("unclear", []) == {"a diagnostic setting cannot be read"}
	diagnostics.doubts("no", ["x"]) == {"the snapshot is incomplete: a diagnostic setting may exist"}
	not diagnostics.doubts("no", [])
	not diagnostics.doubts("yes", ["x"])
}
