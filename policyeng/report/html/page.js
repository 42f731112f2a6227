"use strict";
// The page contains the findings once, as HTML in a noscript element. The script reads that as text and creates elements
// for one page of findings at a time. It sorts, filters and groups the numbers of the index.
(() => {
  const byId = (id) => document.getElementById(id);
  const OUTCOMES = ["fail", "error", "unknown", "exempt", "pass"];
  const SEVERITIES = ["critical", "high", "medium", "low", "info"];
  const PRINTED = 2000;

  const index = JSON.parse(byId("index").textContent);
  const lines = byId("every").textContent.split("\n").filter((line) => line.startsWith("<tbody"));
  const findings = index.rows.map(([outcome, policyNumber, resourceNumber, since], number) => {
    const [policy, title, rank, area, controls] = index.policies[policyNumber];
    const [name, resource, type, owner] = index.resources[resourceNumber];
    const severity = SEVERITIES.length - 1 - rank;
    return { number, outcome, severity, policy, policyNumber, title, area, controls, name, resource, type, owner, since };
  });
  const form = document.querySelector("#browser form");
  const fields = form.elements;
  const table = byId("table");
  const collator = new Intl.Collator("en", { numeric: true });

  // ---- the visible findings

  const state = { key: "", direction: 1, by: "", page: 0, open: new Set(), unfolded: false, shown: [], groups: [] };

  const words = new Map();
  const wordsOf = (finding) => {
    if (!words.has(finding.number)) {
      const text = lines[finding.number].replace(/<[^>]*>/g, " ").replace(/&(lt|gt|amp|#34|#39);/g, (entity) =>
        ({ "&lt;": "<", "&gt;": ">", "&amp;": "&", "&#34;": '"', "&#39;": "'" })[entity]);
      const { title, resource, type, area, controls } = finding;
      words.set(finding.number, [text, title, resource, type, area, ...controls].join(" ").toLowerCase());
    }
    return words.get(finding.number);
  };

  const ticked = (name) => new Set([...fields[name]].filter((box) => box.checked).map((box) => Number(box.value)));

  const filtered = () => {
    const outcomes = ticked("outcome");
    const severities = ticked("severity");
    const [policy, area, control, owner, type] = ["policy", "area", "control", "owner", "type"].map((name) => fields[name].value);
    const sought = fields.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    return findings.filter((finding) =>
      outcomes.has(finding.outcome) && severities.has(finding.severity)
      && (!policy || finding.policy === policy) && (!area || finding.area === area)
      && (!control || finding.controls.includes(control))
      && (!owner || (owner === " " ? !finding.owner : finding.owner === owner))
      && (!type || finding.type.toLowerCase() === type)
      && sought.every((word) => wordsOf(finding).includes(word)));
  };

  const compare = (one, other) => {
    const [left, right] = [one[state.key], other[state.key]];
    const order = typeof left === "number" ? left - right : collator.compare(left, right);
    return order * state.direction || one.number - other.number;
  };

  const NAMES = {
    resource: (finding) => [finding.resource],
    policy: (finding) => [`${finding.policy} ${finding.title}`],
    control: (finding) => (finding.controls.length ? finding.controls : ["no control"]),
    owner: (finding) => [finding.owner || "no owner"],
  };

  const grouped = (members, by) => {
    const groups = new Map();
    for (const finding of members) {
      for (const name of NAMES[by](finding)) {
        if (!groups.has(name)) groups.set(name, { name, members: [], worst: SEVERITIES.length, counts: [0, 0, 0, 0, 0] });
        const group = groups.get(name);
        group.members.push(finding);
        group.counts[finding.outcome] += 1;
        if (finding.outcome === 0) group.worst = Math.min(group.worst, finding.severity);
      }
    }
    return [...groups.values()].sort((one, other) =>
      one.worst - other.worst || other.counts[0] - one.counts[0] || collator.compare(one.name, other.name));
  };

  // ---- elements

  const element = (tag, properties, ...children) => {
    const created = Object.assign(document.createElement(tag), properties);
    created.append(...children);
    return created;
  };

  const bodyOf = (finding) => {
    const template = document.createElement("template");
    template.innerHTML = lines[finding.number]; // trusted markup, in which all external text is escaped
    const body = template.content.firstElementChild;
    const more = body.rows[1];
    if (!more) return body;
    const remedy = byId(`policy-${finding.policyNumber}`).querySelector(".remedy");
    more.cells[0].append(remedy.cloneNode(true));
    more.hidden = !state.unfolded;
    const cell = body.rows[0].cells[2];
    const button = element("button", { type: "button", className: "fold" });
    button.setAttribute("aria-expanded", String(state.unfolded));
    button.setAttribute("aria-label", `Details of ${finding.policy} on ${finding.name}`);
    button.addEventListener("click", () => {
      more.hidden = !more.hidden;
      button.setAttribute("aria-expanded", String(!more.hidden));
    });
    cell.prepend(button);
    return body;
  };

  const headOf = (group) => {
    const counts = group.counts.map((count, outcome) => (count ? `${count} ${OUTCOMES[outcome]}` : "")).filter(Boolean);
    const button = element("button", { type: "button", className: "fold" }, group.name);
    button.setAttribute("aria-expanded", String(state.open.has(group.name)));
    button.addEventListener("click", () => {
      if (!state.open.delete(group.name)) state.open.add(group.name);
      layOut();
      for (const one of table.querySelectorAll(".group .fold")) if (one.textContent === group.name) one.focus();
    });
    const head = element("th", { colSpan: table.tHead.rows[0].cells.length, scope: "rowgroup" }, button,
      element("span", { className: "note" }, counts.join(", ")));
    return element("tbody", { className: "group" }, element("tr", {}, head));
  };

  /** List the findings and group headings of all pages. */
  const listEntries = () => {
    if (!state.by) return state.shown;
    return state.groups.flatMap((group) => [group, ...(state.unfolded || state.open.has(group.name) ? group.members : [])]);
  };

  const draw = (entries) => {
    for (const body of [...table.tBodies]) body.remove();
    const fragment = document.createDocumentFragment();
    for (const entry of entries) fragment.append(entry.members ? headOf(entry) : bodyOf(entry));
    table.append(fragment);
  };

  const layOut = () => {
    const entries = listEntries();
    const many = Number(byId("many").value);
    const pages = Math.max(1, Math.ceil(entries.length / many));
    state.page = Math.min(state.page, pages - 1);
    const begin = state.page * many;
    const visible = entries.slice(begin, begin + many);
    if (visible.length && !visible[0].members && state.groups.length) {
      visible.unshift(entries.slice(0, begin).findLast((entry) => entry.members)); // the group continues from the page before
    }
    draw(visible);
    byId("page").textContent = `Page ${state.page + 1} of ${pages}`;
    byId("earlier").disabled = state.page === 0;
    byId("later").disabled = state.page === pages - 1;
  };

  const passBox = [...fields.outcome].at(-1);
  const number = (count) => count.toLocaleString("en");

  const update = () => {
    state.shown = filtered();
    if (state.key) state.shown.sort(compare);
    const by = state.by = fields.group.value; // until the next update
    state.groups = by ? grouped(state.shown, by) : [];
    state.page = 0;
    layOut();
    const groups = by ? `, in ${number(state.groups.length)} groups` : "";
    const passes = passBox.checked ? "" : "; passes are hidden";
    byId("count").textContent = `${number(state.shown.length)} of ${number(findings.length)} findings${groups}${passes}`;
    if (byId("passes")) byId("passes").textContent = passBox.checked ? "Hide passes" : "Show passes";
  };

  // ---- controls

  const addOptions = (name, values) => {
    for (const [value, label] of values) fields[name].append(element("option", { value }, label));
    fields[name].parentElement.hidden = values.length < 2;
  };
  const distinct = (values) => [...new Set(values)].filter(Boolean).sort(collator.compare);
  const same = (value) => [value, value];
  addOptions("policy", distinct(findings.map((finding) => finding.policy)).map(same));
  addOptions("area", distinct(findings.map((finding) => finding.area)).map(same));
  addOptions("control", distinct(findings.flatMap((finding) => finding.controls)).map(same));
  const owners = distinct(findings.map((finding) => finding.owner)).map(same);
  addOptions("owner", owners.length && findings.some((finding) => !finding.owner) ? [[" ", "no owner"], ...owners] : owners);
  const types = new Map(findings.map((finding) => [finding.type.toLowerCase(), finding.type]));
  addOptions("type", distinct([...types.keys()]).map((key) => [key, types.get(key)]));

  const keys = ["outcome", "severity", "policy", "name", "owner", "since"];
  [...table.tHead.rows[0].cells].slice(0, -1).forEach((cell, column) => {
    const button = element("button", { type: "button", className: "sort" }, cell.textContent);
    button.addEventListener("click", () => {
      state.direction = state.key === keys[column] ? -state.direction : 1;
      state.key = keys[column];
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", state.direction === 1 ? "ascending" : "descending");
      update();
    });
    cell.replaceChildren(button);
  });

  let waiting = 0;
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(update, 120);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => {
    state.open.clear();
    update();
  }));
  byId("passes")?.addEventListener("click", () => {
    passBox.checked = !passBox.checked;
    update();
  });
  byId("unfold").addEventListener("click", (event) => {
    state.unfolded = !state.unfolded;
    event.currentTarget.setAttribute("aria-pressed", String(state.unfolded));
    layOut();
  });
  const turn = (by) => {
    state.page += by;
    layOut();
    byId("findings-title").scrollIntoView();
  };
  byId("earlier").addEventListener("click", () => turn(-1));
  byId("later").addEventListener("click", () => turn(1));
  byId("many").addEventListener("change", layOut);

  // ---- printing and colors

  const names = new Map(); // the ids of the resources that have a short name
  for (const [name, id] of index.resources) names.set(name, (names.get(name) || new Set()).add(id));

  const note = (...children) => element("div", { className: "note" }, ...children);

  /** Create a row for print of findings in a group that have equal reasons: what differs is in a line for each. */
  const printedRow = ({ reasons, members }, by) => {
    const [first] = members;
    const alone = members.length === 1;
    const tag = element("td", {}, first.head.cells[0].firstElementChild);
    if (by !== "policy") tag.append(" ", first.head.cells[1].firstElementChild);
    const said = element("td");
    if (by !== "policy") said.append(element("b", {}, `${first.finding.policy} ${first.finding.title}`));
    said.append(...reasons);
    const asides = members.map(({ finding, place }) => [
      alone ? "" : finding.name, by === "owner" ? "" : finding.owner, finding.since && `since ${finding.since.slice(0, 10)}`,
      place, names.get(finding.name).size > 1 ? finding.resource : ""].filter(Boolean).join(", "));
    said.append(...asides.filter(Boolean).map((aside) => note(aside)));
    return element("tr", {}, tag, element("td", {}, alone ? first.finding.name : `${members.length} resources`), said);
  };

  /** Return findings with equal reasons together; the location in the file and the scope of what is missing may differ. */
  const alike = (findings) => {
    const blocks = new Map();
    for (const finding of findings) {
      const [head, more] = bodyOf(finding).rows;
      const reasons = more ? [...more.querySelectorAll(".exemption, .reasons")] : [];
      const places = more ? [...more.querySelectorAll(".reasons .note")] : [];
      const place = (places[0] || more?.querySelector(".place"))?.textContent.replace(/^at /, "") || "";
      for (const other of places.length === 1 ? places : []) other.remove();
      for (const path of more ? more.querySelectorAll(".reasons .path") : []) {
        if (path.textContent.startsWith("/subscriptions/")) path.remove();
      }
      const key = [finding.outcome, finding.policy, ...reasons.map((each) => each.textContent)].join("\n");
      if (!blocks.has(key)) blocks.set(key, { reasons, members: [] });
      blocks.get(key).members.push({ finding, head, place: places.length > 1 ? "" : place });
    }
    return [...blocks.values()];
  };

  /** Create a group for print: for a policy with its reason, fix and source. */
  const printedGroup = (group, members, by) => {
    const title = element("h3", {}, group.name);
    const counts = group.counts.map((count, outcome) => (count ? `${count} ${OUTCOMES[outcome]}` : "")).filter(Boolean);
    const parts = [title];
    if (members.length > 1) title.append(" ", element("span", { className: "note" }, counts.join(", ")));
    if (by === "policy") {
      const row = byId(`policy-${members[0].policyNumber}`);
      title.prepend(row.querySelector(".tag").cloneNode(true), " ");
      parts.push(row.querySelector(".remedy").cloneNode(true));
    }
    const table = element("table", {}, element("tbody", {}, ...alike(members).map((block) => printedRow(block, by))));
    return element("section", { className: "printed" }, ...parts, table);
  };

  const printed = byId("printed");
  addEventListener("beforeprint", () => {
    const by = state.by || "policy";
    let left = PRINTED;
    for (const group of grouped(state.shown, by)) {
      const members = group.members.slice(0, left);
      left -= members.length;
      if (members.length) printed.append(printedGroup(group, members, by));
    }
    if (state.shown.length > PRINTED) {
      printed.append(element("p", {}, `The first ${number(PRINTED)} of ${number(state.shown.length)} findings are printed.`));
    }
    document.documentElement.dataset.printed = by;
  });
  addEventListener("afterprint", () => {
    printed.replaceChildren();
    delete document.documentElement.dataset.printed;
  });

  const theme = byId("theme");
  const useStorage = (use) => {
    try {
      return use(localStorage);
    } catch {
      return ""; // some browsers have no storage for local files
    }
  };
  const paint = () => {
    if (theme.value) document.documentElement.dataset.theme = theme.value;
    else delete document.documentElement.dataset.theme;
  };
  theme.value = useStorage((storage) => storage.getItem("policyeng-theme")) || "";
  theme.addEventListener("change", () => {
    paint();
    useStorage((storage) => storage.setItem("policyeng-theme", theme.value));
  });
  paint();

  theme.parentElement.hidden = false;
  byId("browser").hidden = false;
  update();
})();
