// @ts-check
/**
 * What the service answers. Times are ISO 8601 on the clock of the plant.
 *
 * @typedef {"quiet" | "suspicious" | "alarm"} PlantState
 * @typedef {"low" | "medium" | "high"} Severity
 * @typedef {{seconds: number, until: string}} Gap a stretch without rows, until the first row after it
 * @typedef {object} SourceState
 * @property {string} state
 * @property {string | null} since
 * @property {string} detail
 * @property {number} rows
 * @property {string | null} last
 * @property {Gap | null} gap
 *
 * @typedef {{stuck: string[], silent: string[], range: string[]}} Still
 *
 * @typedef {object} PlantRow a row of the overview
 * @property {string} name
 * @property {PlantState} state
 * @property {number | null} evidence 1 raises an alarm
 * @property {Severity | null} severity of the alarm
 * @property {boolean} acknowledged
 * @property {string | null} position start of the last window
 * @property {number} windows
 * @property {string[]} named
 * @property {string | null} onset
 * @property {string | null} no_data why the plant has no data; null while it has
 * @property {Still} still
 * @property {Record<string, SourceState>} sources
 * @property {number} sensors
 *
 * @typedef {object} Fault an alarm as it is now
 * @property {string} raised
 * @property {string} onset
 * @property {[string, string]} onset_interval
 * @property {string[]} named
 * @property {string[]} kinds
 * @property {(number | null)[]} sizes
 * @property {number[]} beliefs
 * @property {number | null} confidence
 *
 * @typedef {object} Sensor
 * @property {string} sensor
 * @property {"alarm" | "silent" | "stuck" | "range" | "shelved" | "waiting" | "normal"} state waiting: no reading yet
 * @property {string | null} since when it went wrong
 * @property {string | null} until when it is no longer shelved
 * @property {string | null} kind
 * @property {number | null} size
 * @property {number | null} value of the last window that has one
 * @property {string | null} heard the start of that window
 * @property {(number | null)[]} recent
 *
 * @typedef {{sensor: string, belief: number | null, kind: string | null, size: number | null}} Suspect
 *
 * @typedef {object} Plant
 * @property {string} name
 * @property {PlantState} state
 * @property {number | null} evidence
 * @property {Severity | null} severity of the alarm
 * @property {boolean} acknowledged
 * @property {string | null} position
 * @property {number} windows
 * @property {string | null} no_data why the plant has no data; null while it has
 * @property {Still} still
 * @property {Record<string, string>} shelved until when, by sensor
 * @property {Record<string, string>} still_since since when a sensor is stuck, silent or out of range
 * @property {Record<string, SourceState>} sources
 * @property {string[]} sensors
 * @property {Suspect[]} suspects
 * @property {Fault | null} fault
 * @property {string} false_alarm_rate
 * @property {boolean} drilled whether the model can say how confident it is
 * @property {string} model
 * @property {string} model_digest
 * @property {string | null} timezone
 * @property {number | null} row_seconds between rows that have no times; null where there are times
 * @property {number} ahead rows that were too far in the future
 * @property {number} held rows that wait because they are ahead of all others
 * @property {{units: Record<string, string>}} options
 * @property {number} seconds length of a window
 * @property {number} late
 * @property {number} duplicate
 *
 * @typedef {{time: string[], evidence: (number | null)[], state: (PlantState | null)[], threshold: number}} Evidence
 * @typedef {(number | null)[]} Curve
 * @typedef {{value: Curve, low: Curve, high: Curve, band_low: Curve, band_high: Curve}} Course
 * @typedef {{time: string[], series: Record<string, Course>}} Series
 * @typedef {{sensors: string[], matrix: (number | null)[][]}} Correlation
 *
 * @typedef {object} EventDocument
 * @property {string} event
 * @property {string} time
 * @property {string} text
 * @property {number | null} number
 * @property {string | null} onset
 * @property {[string, string] | null} onset_interval
 * @property {string[]} named
 * @property {string[]} kinds
 * @property {(number | null)[]} sizes
 * @property {number[]} beliefs
 * @property {number | null} confidence
 * @property {string[]} sensors
 *
 * @typedef {object} IncidentRow
 * @property {number} number
 * @property {string} time
 * @property {string | null} onset
 * @property {string | null} over
 * @property {string[]} named
 * @property {Record<string, string>} joined when those of them joined that the alarm did not begin with
 * @property {number | null} confidence
 * @property {boolean} acknowledged
 *
 * @typedef {{at: string, who: string, text: string}} Comment
 * @typedef {{at: string, who: string, action: string, document?: {order?: string}}} Action
 * @typedef {{number: number, time: string, named: string[], likeness: number}} Similar
 *
 * @typedef {object} Incident
 * @property {EventDocument} alarm
 * @property {EventDocument[]} course
 * @property {Severity} severity
 * @property {string[]} hindsight the sensors that all its windows name
 * @property {number | null} confidence in exactly these
 * @property {Suspect[]} suspects what all its windows say of each of them
 * @property {string[]} why
 * @property {Similar[]} similar
 * @property {Comment[]} comments
 * @property {Action[]} actions
 *
 * @typedef {{plant: string, time: string, evidence: number | null, state: PlantState}} WindowMessage
 * @typedef {{plant: string, document: EventDocument}} EventMessage
 * @typedef {{name: string, scopes: string[], by: string, csrf: string | null}} Me
 */
export {};
