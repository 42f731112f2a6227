// What k6 runs: requests at constant rates whatever the answers take, each answer compared with the expected text.
// `PLAN` is a file: {"url", "timeout", "requests": [{"body", "says"}], "phases": [{"name", "rate", "start", "seconds", "most"}]}.
import http from "k6/http";
import exec from "k6/execution";
import { SharedArray } from "k6/data";
import { Trend } from "k6/metrics";

const plan = JSON.parse(open(__ENV.PLAN));
const requests = new SharedArray("requests", () => plan.requests);
const kinds = ["right", "wrong", "refused", "other", "lost"];
const trends = {};
for (const phase of plan.phases) {
  for (const kind of kinds) {
    trends[`${phase.name}_${kind}`] = new Trend(`${phase.name}_${kind}`, true);
  }
}

export const options = {
  scenarios: Object.fromEntries(
    plan.phases.map((phase) => [
      phase.name,
      {
        executor: "constant-arrival-rate",
        rate: Math.round(phase.rate * 1000), // it takes whole numbers
        timeUnit: "1000s",
        startTime: `${phase.start}s`,
        duration: `${phase.seconds}s`,
        gracefulStop: `${plan.timeout + 5}s`,
        preAllocatedVUs: phase.most,
        maxVUs: phase.most,
      },
    ]),
  ),
  // a threshold that always holds is how k6 is told to keep these by scenario
  thresholds: Object.fromEntries(
    plan.phases.map((phase) => [`dropped_iterations{scenario:${phase.name}}`, ["count>=0"]]),
  ),
  summaryTrendStats: ["count", "med", "p(99)", "max"],
};

function kindOf(response, says) {
  if (response.status === 0) {
    return "lost";
  }
  if (response.status === 429 || response.status === 503) {
    return "refused";
  }
  if (response.status !== 200) {
    return "other";
  }
  return response.body.trimEnd().endsWith(says) ? "right" : "wrong";
}

export default function () {
  const request = requests[exec.scenario.iterationInTest % requests.length];
  const response = http.post(plan.url, request.body, {
    headers: { "Content-Type": "application/json" },
    timeout: `${plan.timeout}s`,
  });
  const { blocked, connecting, duration } = response.timings;
  trends[`${exec.scenario.name}_${kindOf(response, request.says)}`].add(blocked + connecting + duration);
}

export function handleSummary(data) {
  return { [__ENV.SUMMARY]: JSON.stringify(data.metrics) };
}
