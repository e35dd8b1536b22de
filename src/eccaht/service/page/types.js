// @ts-check
/**
 * What the service answers, made of its shapes by `python -m docs.generate`. Times are ISO 8601 on the clock of the
 * plant.
 *
 * @typedef {Plant["state"]} PlantState
 * @typedef {Incident["severity"]} Severity
 * @typedef {Plant["still"]} Still
 * @typedef {(number | null)[]} Curve
 * @typedef {{plant: string, time: string, evidence: number | null, state: Evidence["state"][number]}} WindowMessage
 * @typedef {{plant: string, document: EventDocument}} EventMessage
 * @typedef {{name: string, scopes: string[], by: string, csrf: string | null}} Me
 *
 * @typedef {object} Action
 * @property {number} id
 * @property {string} at
 * @property {string} who
 * @property {string} action
 * @property {string | null} plant
 * @property {Record<string, any>} document
 *
 * @typedef {object} AskedSensor
 * @property {string} sensor
 * @property {string} why
 *
 * @typedef {object} CheckDocument
 * @property {string} sensor
 * @property {number | null} read
 * @property {number | null} expected
 * @property {number | null} decides
 *
 * @typedef {object} CheckedDocument
 * @property {string} sensor
 * @property {string | null} time
 * @property {number | null} value
 * @property {number | null} read
 * @property {boolean} wrong
 *
 * @typedef {object} Comment
 * @property {string} at
 * @property {string} who
 * @property {string} text
 *
 * @typedef {object} Correlation
 * @property {string[]} sensors
 * @property {number[][]} matrix
 *
 * @typedef {object} Course
 * @property {(number | null)[]} value
 * @property {(number | null)[]} low
 * @property {(number | null)[]} high
 * @property {(number | null)[]} band_low
 * @property {(number | null)[]} band_high
 *
 * @typedef {object} DifferenceDocument
 * @property {Weight[]} weights
 * @property {number | null} usual
 * @property {number | null} read
 * @property {number | null} deviation
 * @property {number | null} size
 * @property {number | null} scatter
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
 * @property {number | null} count
 * @property {string[]} asked
 * @property {string | null} notice
 * @property {string} plant
 * @property {number | null} at
 *
 * @typedef {object} Evidence
 * @property {string[]} time
 * @property {(number | null)[]} evidence
 * @property {("quiet" | "suspicious" | "changed" | "alarm" | null)[]} state
 * @property {number} threshold
 *
 * @typedef {object} Fault
 * @property {string} raised
 * @property {string} onset
 * @property {[string, string]} onset_interval
 * @property {string[]} named
 * @property {string[]} kinds
 * @property {(number | null)[]} sizes
 * @property {number[]} beliefs
 * @property {number | null} confidence
 *
 * @typedef {object} IncidentDocument
 * @property {string | null} onset
 * @property {string[] | null} onset_interval
 * @property {string | null} end
 * @property {boolean} changed
 * @property {SensorDocument[]} named
 * @property {string[]} kinds
 * @property {any} runner_up
 * @property {number | null} confidence
 * @property {boolean} confident
 * @property {boolean} sure
 * @property {CheckDocument[]} checks
 * @property {CheckedDocument[]} checked
 * @property {number | null} evidence
 * @property {SensorDocument[]} sensors
 *
 * @typedef {object} IncidentRow
 * @property {number} number
 * @property {string} time
 * @property {string | null} onset
 * @property {string | null} over
 * @property {string[]} named
 * @property {Record<string, string>} joined
 * @property {number | null} confidence
 * @property {boolean} acknowledged
 *
 * @typedef {object} Incident
 * @property {EventDocument} alarm
 * @property {EventDocument[]} course
 * @property {"low" | "medium" | "high"} severity
 * @property {IncidentDocument | null} answer
 * @property {string[]} why
 * @property {Similar[]} similar
 * @property {Comment[]} comments
 * @property {Action[]} actions
 *
 * @typedef {object} PlantOptions
 * @property {string | null} false_alarms
 * @property {number} lateness
 * @property {number} ahead
 * @property {number | null} readings
 * @property {Record<string, number>} costs
 * @property {Record<string, string>} at_least_every
 * @property {Record<string, string>} units
 * @property {Record<string, any>} sources
 *
 * @typedef {object} PlantRow
 * @property {string} name
 * @property {"broken" | "waiting" | "no-data" | "quiet" | "suspicious" | "changed" | "alarm"} state
 * @property {number | null} evidence
 * @property {"low" | "medium" | "high" | null} severity
 * @property {boolean} acknowledged
 * @property {string | null} position
 * @property {number} windows
 * @property {string[]} named
 * @property {string | null} onset
 * @property {string | null} no_data
 * @property {string | null} watched_by
 * @property {Record<string, string[]>} still
 * @property {Record<string, string>} shelved
 * @property {Record<string, Source>} sources
 * @property {number} sensors
 *
 * @typedef {object} Plant
 * @property {string} name
 * @property {"broken" | "waiting" | "no-data" | "quiet" | "suspicious" | "changed" | "alarm"} state
 * @property {number | null} evidence
 * @property {"low" | "medium" | "high" | null} severity
 * @property {boolean} acknowledged
 * @property {string | null} position
 * @property {number} windows
 * @property {string[]} named
 * @property {string | null} onset
 * @property {string | null} no_data
 * @property {string | null} watched_by
 * @property {Record<string, string[]>} still
 * @property {Record<string, string>} shelved
 * @property {Record<string, Source>} sources
 * @property {string} model_digest
 * @property {string} model
 * @property {number} seconds
 * @property {string | null} timezone
 * @property {number | null} row_seconds
 * @property {string[]} sensors
 * @property {number} threshold_every
 * @property {string} false_alarm_rate
 * @property {boolean} drilled
 * @property {Fault | null} fault
 * @property {Record<string, string>} still_since
 * @property {Suspect[]} suspects
 * @property {AskedSensor[]} asked
 * @property {number} late
 * @property {number} duplicate
 * @property {number} ahead
 * @property {number} held
 * @property {PlantOptions} options
 * @property {Record<string, number>} offsets
 * @property {boolean} restorable
 *
 * @typedef {object} SensorDocument
 * @property {string} sensor
 * @property {boolean} named
 * @property {string | null} kind
 * @property {string | null} since
 * @property {number | null} belief
 * @property {number | null} evidence
 * @property {number | null} evidence_needed
 * @property {number | null} size
 * @property {number | null} size_low
 * @property {number | null} size_high
 * @property {number | null} size_raw
 * @property {number | null} size_raw_low
 * @property {number | null} size_raw_high
 * @property {number | null} z_alone
 * @property {number | null} z_given
 * @property {number | null} read
 * @property {number | null} expected
 * @property {Weight[]} predictors
 * @property {DifferenceDocument | null} difference
 * @property {string | null} why
 *
 * @typedef {object} Sensor
 * @property {string} sensor
 * @property {"alarm" | "silent" | "stuck" | "range" | "shelved" | "waiting" | "normal"} state
 * @property {string | null} since
 * @property {string | null} until
 * @property {string | null} kind
 * @property {number | null} size
 * @property {number | null} value
 * @property {string | null} heard
 * @property {(number | null)[]} recent
 *
 * @typedef {object} Series
 * @property {string[]} time
 * @property {Record<string, Course>} series
 * @property {number} one_of
 *
 * @typedef {object} Similar
 * @property {number} number
 * @property {string} time
 * @property {string[]} named
 * @property {number} likeness
 *
 * @typedef {object} Source
 * @property {"connecting" | "running" | "waiting" | "broken"} state
 * @property {string} since
 * @property {string} detail
 * @property {number} rows
 * @property {string | null} last
 *
 * @typedef {object} Suspect
 * @property {string} sensor
 * @property {number} belief
 * @property {string | null} kind
 * @property {number | null} size
 *
 * @typedef {object} Trend
 * @property {(number | null)[]} value
 * @property {(number | null)[]} low
 * @property {(number | null)[]} high
 *
 * @typedef {object} Trends
 * @property {string[]} time
 * @property {Record<string, Trend>} series
 * @property {number} seconds
 * @property {number} windows
 * @property {number} one_of
 * @property {string | null} first
 * @property {string | null} last
 *
 * @typedef {object} Weight
 * @property {string} sensor
 * @property {number | null} weight
 */
export {};
