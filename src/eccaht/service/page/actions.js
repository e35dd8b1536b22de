// @ts-check
/** What operators may do, each behind one button. */

import { plantPath } from "./api.js";
import { h } from "./dom.js";
import { counted, listed, number } from "./format.js";
import { ask } from "./parts.js";
import { label } from "./units.js";

/** @typedef {import("./parts.js").Context} Context */
/** @typedef {import("./types.js").Plant} Plant */

const TIMES = /** @type {[string, string][]} */ ([
  ["30min", "30 minutes"],
  ["2h", "2 hours"],
  ["8h", "8 hours"],
  ["1d", "1 day"],
  ["7d", "7 days"],
]);
const SHARE = 6; // a check tells the sensor from what the others predict if three deviations are half of what lies between
const ROWS = [100, 1000, 10000]; // for plants without times

/**
 * For how long a sensor may be shelved, and the words for it.
 * @param {Plant} plant
 * @returns {[string, string][]}
 */
function times({ row_seconds }) {
  return row_seconds === null ? TIMES : ROWS.map((rows) => [`${rows * row_seconds}s`, counted(rows, "row")]);
}

/**
 * Say that the alarm is known.
 * @param {Context} context
 * @param {string} plant
 */
export function acknowledge(context, plant) {
  ask({
    title: "Acknowledge the alarm",
    body: [
      h("p", {}, `The alarm of ${plant} stays active until the readings return to normal.`),
      h("p", {}, "All users see that it is acknowledged."),
    ],
    submit: "Acknowledge",
    done: async () => {
      await context.api.post(plantPath(plant, "acknowledge"));
      context.say(`The alarm of ${plant} is acknowledged.`);
    },
  });
}

/**
 * Take the present state of the sensors in the alarm as normal.
 * @param {Context} context
 * @param {string} plant
 * @param {string[]} named
 */
export function callNormal(context, plant, named) {
  ask({
    title: "New normal",
    body: [
      h(
        "p",
        {},
        `From now on the present readings of ${listed(named)} are normal. The alarm ends once the windows fit.`,
      ),
      h(
        "p",
        { class: "faint" },
        "This stays until it is taken back or the model is calibrated anew: do it for a change that was meant, never to silence an alarm.",
      ),
    ],
    submit: "Take as normal",
    done: async () => {
      await context.api.post(plantPath(plant, "normal"));
      context.say(`The present state of ${listed(named)} is normal from now on.`);
    },
  });
}

/**
 * Enter what a sensor reads by hand, the proposed ones first.
 * @param {Context} context
 * @param {string} plant
 * @param {import("./types.js").Incident} incident
 * @param {() => void} changed
 */
export function enterCheck(context, plant, { alarm, answer }, changed) {
  const proposed = answer?.checks ?? [];
  const rest = (answer?.sensors ?? []).filter((one) => !proposed.some((check) => check.sensor === one.sensor));
  const sensors = [...proposed, ...rest];
  const noise = h("input", { name: "noise", type: "number", step: "any", required: true });
  const hint = h("p", { class: "faint" });
  const select = h(
    "select",
    { name: "sensor", change: () => chosen() },
    sensors.map((one) => h("option", { value: one.sensor }, label(one.sensor))),
  );
  const chosen = () => {
    const { read = null, expected = null } = sensors.find((one) => one.sensor === select.value) ?? {};
    hint.textContent = `The sensor reads ${number(read)}, the others predict ${number(expected)}.`;
    if (read !== null && expected !== null) noise.value = Math.abs((read - expected) / SHARE).toPrecision(1);
  };
  chosen();
  ask({
    title: "Enter a reading by hand",
    body: [
      h("label", {}, "Sensor", select),
      hint,
      h("label", {}, "Reading", h("input", { name: "value", type: "number", step: "any", required: true })),
      h("label", {}, "Standard deviation of its error", noise),
      h("p", { class: "faint" }, "A sensor that reads otherwise by more than three of these is wrong, else it is sound."),
    ],
    submit: "Compare",
    done: async (data) => {
      const [value, error] = [Number(data.get("value")), Number(data.get("noise"))];
      const check = { sensor: String(data.get("sensor")), value, noise: error };
      await context.api.post(plantPath(plant, "incidents", alarm.number ?? 0, "checks"), check);
      context.say(`The reading of ${check.sensor} is kept, and the others are judged anew.`);
      changed();
    },
  });
}

/**
 * Take back what was called normal last.
 * @param {Context} context
 * @param {string} plant
 */
export async function restore(context, plant) {
  await context.api.post(plantPath(plant, "restore"));
  context.say("What was called normal last is taken back.");
}

/**
 * Leave a sensor out for a time.
 * @param {Context} context
 * @param {Plant} plant
 * @param {string} [chosen]
 */
export function shelve(context, plant, chosen) {
  const choices = times(plant);
  ask({
    title: "Shelve a sensor",
    body: [
      h(
        "p",
        { class: "faint" },
        "A shelved sensor raises no alarm until its time is over, for example while it is being calibrated.",
      ),
      h("label", { for: "shelve-sensor" }, "Sensor"),
      h(
        "select",
        { name: "sensor", id: "shelve-sensor", required: true },
        plant.sensors.map((name) => h("option", { value: name, selected: name === chosen }, name)),
      ),
      h("label", { for: "shelve-time" }, "For"),
      h(
        "select",
        { name: "duration", id: "shelve-time" },
        choices.map(([value, text], place) => h("option", { value, selected: place === 1 }, text)),
      ),
    ],
    submit: "Shelve",
    done: async (data) => {
      const sensor = String(data.get("sensor"));
      const duration = String(data.get("duration"));
      await context.api.post(plantPath(plant.name, "shelve"), { sensor, duration });
      context.say(`${label(sensor)} is shelved for ${choices.find(([value]) => value === duration)?.[1]}.`);
    },
  });
}

/**
 * Watch a shelved sensor again.
 * @param {Context} context
 * @param {string} plant
 * @param {string} sensor
 */
export function unshelve(context, plant, sensor) {
  ask({
    title: "Unshelve the sensor",
    body: [h("p", {}, `${label(sensor)} is watched again from the next window on.`)],
    submit: "Unshelve",
    done: async () => {
      await context.api.post(plantPath(plant, "unshelve"), { sensor });
      context.say(`${label(sensor)} is watched again.`);
    },
  });
}
