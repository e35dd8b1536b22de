// @ts-check
/**
 * Units as names of columns have them at their end: "Temp [°C]" is the sensor Temp, which reads °C. Those of other
 * sensors are in the settings of their plant.
 */

/** @typedef {import("./types.js").Plant} Plant */

const KNOWN = new Set(
  [
    "% ‰ ° °C °F degC degF C F K m mm cm km µm um in ft s ms sec min h hr d rad deg",
    "A mA V mV kV W kW MW GW Wh kWh MWh VA kVA var kvar J kJ MJ GJ Hz kHz MHz rpm RPM S mS µS uS ohm Ω kΩ dB",
    "Pa hPa kPa MPa bar barg bara mbar psi psig psia atm mmHg mmH2O mH2O N kN Nm",
    "g kg mg µg ug t lb l L ml mL hl hL gal gpm GPM cfm scfm Nm Sm mol mmol ppm ppb pH NTU FNU FTU lx lm 1",
  ].flatMap((line) => line.split(" ")),
);
/** @type {Record<string, string>} */
let given = {}; // of the plant that is shown
const AT_THE_END = /^(.*\S)\s*(?:\[([^[\]]+)\]|\(([^()]+)\))$/;

/**
 * A name without its unit, and the unit. What is in brackets and no unit stays a part of it, as in "Valve (spare)".
 * @param {string} name
 * @returns {[string, string]}
 */
function parted(name) {
  const found = AT_THE_END.exec(name.trim());
  const unit = (found?.[2] ?? found?.[3] ?? "").trim();
  return found && isUnit(unit) ? [found[1], unit] : [name, ""];
}

/** @param {string} text */
function isUnit(text) {
  const parts = text.split(/[/·*⋅ ]/);
  return text !== "1" && parts.every((part) => KNOWN.has(part) || KNOWN.has(part.replace(/(?:\^?-?\d|[²³])$/, "")));
}

/**
 * A sensor as people call it.
 * @param {string} name
 */
export function label(name) {
  return parted(name)[0];
}

/**
 * A text of a number with the unit of its sensor.
 * @param {string} text
 * @param {string} name
 */
export function withUnit(text, name) {
  const unit = Object.hasOwn(given, name) ? given[name] : parted(name)[1];
  return unit && text !== "–" ? `${text}\u00a0${unit}` : text;
}

/**
 * From now on a plant is shown, with the units of its settings; none where many plants are.
 * @template {Plant | null} P
 * @param {P} plant
 * @returns {P}
 */
export function withUnitsOf(plant) {
  given = plant?.options.units ?? {};
  return plant;
}
