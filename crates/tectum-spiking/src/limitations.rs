//! Settings of a genome that have no effect in its network, or another one than the file states.

use std::collections::BTreeSet;

use serde::Serialize;

use super::mapping_rules::{feeds_memory, grown_directions, memory_areas, rule};
use crate::genome::{Area, Genome, Mapping, Morphology, PlasticMorphology};

/// Areas or mappings that a sentence names.
const MAX_NAMES: usize = 4;
/// A product of two floats that is this near to a whole number means that number.
const ROUNDING: f32 = 1e-3;

/// Maximum postsynaptic currents that the format's engines write into every area.
const USUAL_CURRENT_MAX: [f32; 3] = [35.0, 10_000.0, 99_999.0];

/// Settings of a mapping that the network does not implement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnsupportedFeature {
    /// Replay is not implemented.
    Replay,
    /// Spikes arrive in the next burst, not after the delay.
    Delay(u8),
}

/// Settings of a mapping that the network does not implement.
pub fn unsupported_features(mapping: &Mapping) -> Vec<UnsupportedFeature> {
    let asked = [
        matches!(
            mapping.morphology,
            Morphology::Plastic(PlasticMorphology::Replay)
        )
        .then_some(UnsupportedFeature::Replay),
        (mapping.delay_bursts != 1).then_some(UnsupportedFeature::Delay(mapping.delay_bursts)),
    ];
    asked.into_iter().flatten().collect()
}

/// A sentence for each kind of setting that has no effect in the network, or another one, with the
/// areas or mappings that have it. If the synapses do not learn, nothing is said about learning.
pub fn limitations(genome: &Genome, learns: bool) -> Vec<String> {
    let memories = memory_areas(genome);
    let learning: BTreeSet<usize> = genome
        .mappings()
        .iter()
        .filter(|mapping| learns && rule(genome, mapping).is_some())
        .map(|mapping| mapping.source)
        .collect();
    let areas = |setting: &dyn Fn(usize, &Area) -> Option<String>, kind: [&str; 3]| {
        let all = genome.areas().iter().enumerate();
        let found =
            all.filter_map(|(index, area)| Some(format!("{}{}", area.id, setting(index, area)?)));
        sentence(found.collect(), ["area", "areas"], kind)
    };
    let mappings = |setting: &dyn Fn(&Mapping) -> Option<String>, kind: [&str; 3]| {
        let found = genome
            .mappings()
            .iter()
            .filter_map(|mapping| Some(format!("{}{}", ends(genome, mapping), setting(mapping)?)));
        sentence(found.collect(), ["mapping", "mappings"], kind)
    };
    let of_learning = |setting: &dyn Fn(&Mapping) -> Option<String>, kind: [&str; 3]| {
        learns.then(|| mappings(setting, kind)).flatten()
    };
    let sentences = [
        areas(
            &degenerates,
            ["has", "have", "a degeneration, which has no effect"],
        ),
        areas(
            &|index, area| limits_current(area, learning.contains(&index)),
            [
                "has a postsynaptic_current_max",
                "have a postsynaptic_current_max",
                "that limits nothing: a current stays as it is, and a weight has a maximum of 255",
            ],
        ),
        areas(
            &snoozes_in_vain,
            [
                "has a snooze",
                "have a snooze",
                "without a limit of consecutive firings, so that it has no effect",
            ],
        ),
        areas(
            &|index, area| {
                let is_memory = area.properties.memory.is_some();
                (is_memory && !memories.contains(&index)).then(String::new)
            },
            [
                "is a memory area",
                "are memory areas",
                "that no mapping shows any patterns, so that nothing is stored",
            ],
        ),
        mappings(
            &replays,
            [
                "replays",
                "replay",
                "what an area remembers, which is not supported",
            ],
        ),
        mappings(
            &|mapping| shows_to_others(genome, mapping),
            [
                "shows patterns",
                "show patterns",
                "to an area that is no memory area, so that nothing is stored",
            ],
        ),
        mappings(
            &delayed,
            [
                "has a delay",
                "have a delay",
                "other than 1 burst, which has no effect (a spike arrives in the next burst)",
            ],
        ),
        mappings(
            &|mapping| is_second(genome, mapping).then(String::new),
            [
                "has no effect",
                "have no effect",
                "because an earlier associative mapping has the same source and destination",
            ],
        ),
        of_learning(
            &|mapping| all_pairs(genome, mapping),
            [
                "grows synapses",
                "grow synapses",
                "between all pairs of neurons, whatever its attractivity",
            ],
        ),
        of_learning(
            &|mapping| multiplied_in_vain(genome, mapping),
            [
                "grows synapses",
                "grow synapses",
                "whose weights begin at 0, whatever the size of its multiplier",
            ],
        ),
        of_learning(
            &plastic_without_synapses,
            [
                "is plastic",
                "are plastic",
                "without synapses that could learn",
            ],
        ),
        of_learning(
            &|mapping| lethal(genome, mapping),
            [
                "loses its whole weight",
                "lose their whole weight",
                "at the first loss, and sends nothing before it gains again",
            ],
        ),
        of_learning(
            &|mapping| rounded(genome, mapping),
            [
                "has a gain or loss",
                "have a gain or loss",
                "that is no whole number from 0 to 255, and becomes one",
            ],
        ),
        of_learning(
            &|mapping| fixed(genome, mapping),
            [
                "is plastic",
                "are plastic",
                "without a gain or loss, so that nothing is learnt",
            ],
        ),
        of_learning(
            &|mapping| never_gains(genome, &memories, mapping),
            [
                "never gains weight",
                "never gain weight",
                "because both ends must fire in every burst of the window, which they cannot",
            ],
        ),
    ];
    sentences.into_iter().flatten().collect()
}

/// How many have a setting, its effect, and the first of them.
fn sentence(
    found: Vec<String>,
    [noun, nouns]: [&str; 2],
    [one, several, effect]: [&str; 3],
) -> Option<String> {
    let count = if found.len() == 1 {
        format!("1 {noun} {one}")
    } else {
        format!("{} {nouns} {several}", found.len())
    };
    let more = if found.len() > MAX_NAMES {
        format!(" and {} more", found.len() - MAX_NAMES)
    } else {
        String::new()
    };
    (!found.is_empty()).then(|| {
        format!(
            "{count} {effect}: {}{more}",
            found[..found.len().min(MAX_NAMES)].join(", ")
        )
    })
}

/// A loss of current with use, which only the older of the format's engines has.
fn degenerates(_: usize, area: &Area) -> Option<String> {
    let degeneration = area.properties.degeneration;
    (degeneration > 0.0).then(|| format!(" ({degeneration})"))
}

/// A maximum below the area's current, or below what its synapses can reach by learning. In the
/// older of the format's engines it limits learning, and nothing else; 0 is none.
fn limits_current(area: &Area, learns: bool) -> Option<String> {
    let maximum = area.properties.postsynaptic_current_max;
    let current = f32::from(area.properties.postsynaptic_current);
    let reached = current * if learns { f32::from(u8::MAX) } else { 1.0 };
    let is_usual = !learns && USUAL_CURRENT_MAX.contains(&maximum);
    (maximum > 0.0 && maximum < reached && !is_usual).then(|| format!(" ({maximum})"))
}

/// A snooze that nothing begins: 0 and 65,535 firings in a row are no limit.
fn snoozes_in_vain(_: usize, area: &Area) -> Option<String> {
    let properties = &area.properties;
    let is_unlimited = [0, u16::MAX].contains(&properties.consecutive_fire_limit);
    (properties.snooze > 0 && is_unlimited).then(|| format!(" ({} bursts)", properties.snooze))
}

fn ends(genome: &Genome, mapping: &Mapping) -> String {
    format!(
        "{} to {}",
        genome.areas()[mapping.source].id,
        genome.areas()[mapping.destination].id
    )
}

fn replays(mapping: &Mapping) -> Option<String> {
    unsupported_features(mapping)
        .contains(&UnsupportedFeature::Replay)
        .then(String::new)
}

fn delayed(mapping: &Mapping) -> Option<String> {
    unsupported_features(mapping)
        .into_iter()
        .find_map(|feature| match feature {
            UnsupportedFeature::Delay(bursts) => Some(format!(" ({bursts} bursts)")),
            UnsupportedFeature::Replay => None,
        })
}

/// Steps of the weight that the file states and the rule cannot have.
fn rounded(genome: &Genome, mapping: &Mapping) -> Option<String> {
    let steps = ["gain", "loss"].into_iter().zip(mapping.plasticity.steps());
    let changed = steps
        .map(|(name, step)| (name, step, step.round().clamp(0.0, 255.0)))
        .filter(|(_, step, taken)| (step - taken).abs() > ROUNDING);
    let changed: Vec<String> = changed
        .map(|(name, step, taken)| format!("{name} {step} becomes {taken:.0}"))
        .collect();
    (learns(genome, mapping) && !changed.is_empty()).then(|| format!(" ({})", changed.join(", ")))
}

/// A memory mapping to an area that stores nothing.
fn shows_to_others(genome: &Genome, mapping: &Mapping) -> Option<String> {
    let destination = &genome.areas()[mapping.destination];
    (feeds_memory(mapping) && destination.properties.memory.is_none()).then(String::new)
}

/// Whether it is an associative mapping after the first one of its source and destination.
fn is_second(genome: &Genome, mapping: &Mapping) -> bool {
    mapping.grows() && grown_directions(genome, mapping) == 0
}

/// The attractivity that synapses which grow do not have.
fn all_pairs(genome: &Genome, mapping: &Mapping) -> Option<String> {
    (grown_directions(genome, mapping) > 0 && mapping.attractivity < 100.0)
        .then(|| format!(" ({} %)", mapping.attractivity))
}

/// The multiplier of synapses which grow, of which only the sign counts.
fn multiplied_in_vain(genome: &Genome, mapping: &Mapping) -> Option<String> {
    (grown_directions(genome, mapping) > 0 && mapping.multiplier.abs() > 1)
        .then(|| format!(" ({})", mapping.multiplier))
}

/// A plastic mapping that stores or replays patterns.
fn plastic_without_synapses(mapping: &Mapping) -> Option<String> {
    let has_none = matches!(
        mapping.morphology,
        Morphology::Plastic(PlasticMorphology::Memory | PlasticMorphology::Replay)
    );
    (mapping.plastic && has_none).then(String::new)
}

/// The weight that a single loss removes.
fn lethal(genome: &Genome, mapping: &Mapping) -> Option<String> {
    let rule =
        rule(genome, mapping).filter(|_| matches!(mapping.morphology, Morphology::Voxels(_)))?;
    let weight = mapping.weight();
    (weight > 0 && weight <= rule.loss).then(|| format!(" (weight {weight}, loss {})", rule.loss))
}

fn fixed(genome: &Genome, mapping: &Mapping) -> Option<String> {
    (learns(genome, mapping) && rule(genome, mapping).is_none()).then(String::new)
}

/// Whether the file asks for synapses that learn.
fn learns(genome: &Genome, mapping: &Mapping) -> bool {
    mapping.plastic && matches!(mapping.morphology, Morphology::Voxels(_))
        || grown_directions(genome, mapping) > 0
}

/// Why no weight can increase: an area whose neurons cannot fire in as many bursts in a row as the
/// window has.
fn never_gains(genome: &Genome, memories: &[usize], mapping: &Mapping) -> Option<String> {
    let rule = rule(genome, mapping).filter(|rule| rule.gain > 0)?;
    let limited = |area: usize| {
        let properties = &genome.areas()[area].properties;
        let (limit, reason) = match (properties.refractory, properties.consecutive_fire_limit) {
            (0, 0) => return None,
            (0, limit) => (u32::from(limit), format!("fires at most {limit} in a row")),
            (refractory, _) => (1, format!("has a refractory period of {refractory}")),
        };
        // The neurons of a memory have neither.
        (limit < rule.window && !memories.contains(&area))
            .then(|| format!("{} {reason}", genome.areas()[area].id))
    };
    let reason = limited(mapping.source).or_else(|| limited(mapping.destination))?;
    Some(format!(" (window {}; {reason})", rule.window))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::genome::GenomeOptions;

    /// Areas `source` and `target` with one mapping, and what is said of it.
    fn said(source: Value, target: Value, rule: Value) -> Vec<String> {
        let mut areas = [source, target];
        for area in &mut areas {
            area["block_boundaries"] = json!([2, 1, 1]);
            area["mp_charge_accumulation"] = json!(true);
        }
        let [mut source, target] = areas;
        source["cortical_mapping_dst"] = json!({"target": [rule]});
        let text = json!({"version": "2.1", "blueprint": {"source": source, "target": target}})
            .to_string();
        let genome = Genome::parse(&text, &GenomeOptions::default())
            .unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(
            limitations(&genome, false).len(),
            usize::from(genome.mappings()[0].delay_bursts != 1),
            "{text}"
        );
        limitations(&genome, true)
    }

    fn rule_of(learning: [f64; 4]) -> Value {
        let [constant, ltp, ltd, window] = learning;
        json!(["projector", 1, 255, true, constant, ltp, ltd, window])
    }

    #[test]
    fn a_delay_other_than_one_burst_is_reported() {
        let delay = |bursts: u8| {
            said(
                json!({}),
                json!({}),
                json!(["projector", 1, 1, false, 0, 0, 0, 0, bursts]),
            )
        };
        assert_eq!(delay(1), [""; 0]);
        for bursts in [0, 3] {
            let expected = format!(
                "1 mapping has a delay other than 1 burst, which has no effect (a spike arrives in the next burst): source to target ({bursts} bursts)"
            );
            assert_eq!(delay(bursts), [expected]);
        }
    }

    #[test]
    fn steps_that_the_rule_cannot_have_are_reported() {
        let of = |learning: [f64; 4]| said(json!({}), json!({}), rule_of(learning));
        let rounded = "1 mapping has a gain or loss that is no whole number from 0 to 255, and becomes one: source to target";
        let fixed = "1 mapping is plastic without a gain or loss, so that nothing is learnt: source to target".to_owned();
        assert_eq!(of([0.1, 30.0, 10.0, 1.0]), [""; 0]);
        assert_eq!(
            of([1000.0, 1.0, 1.0, 1.0]),
            [
                "1 mapping loses its whole weight at the first loss, and sends nothing before it gains again: source to target (weight 255, loss 255)".to_owned(),
                format!("{rounded} (gain 1000 becomes 255, loss 1000 becomes 255)")
            ]
        );
        assert_eq!(
            of([-1.0, 1.0, 0.0, 1.0]),
            [format!("{rounded} (gain -1 becomes 0)"), fixed.clone()]
        );
        assert_eq!(
            of([0.4, 1.0, 10.0, 1.0]),
            [format!("{rounded} (gain 0.4 becomes 0)")]
        );
        assert_eq!(of([0.0, 1.0, 1.0, 1.0]), [fixed]);
    }

    #[test]
    fn a_weight_that_the_first_loss_removes_is_reported() {
        let of = |weight: i32, loss: f64| {
            said(
                json!({}),
                json!({}),
                json!(["projector", 1, weight, true, 1, 1, loss, 1]),
            )
        };
        assert_eq!(of(4, 3.0), [""; 0]);
        for weight in [3i32, -1] {
            let expected = format!(
                "1 mapping loses its whole weight at the first loss, and sends nothing before it gains again: source to target (weight {}, loss 3)",
                weight.abs()
            );
            assert_eq!(of(weight, 3.0), [expected]);
        }
    }

    #[test]
    fn settings_of_associative_mappings_without_effect_are_reported() {
        let rule = json!({"morphology_id": "associative_memory", "postSynapticCurrent_multiplier": -4, "plasticity_flag": true,
            "plasticity_constant": 1, "ltp_multiplier": 1, "ltd_multiplier": 1, "synapse_attractivity": 50});
        let back = json!(["associative_memory", 1, -1, true, 1, 2, 2]);
        let again = json!(["bidirectional_stdp", 1, 7, true, 1, 0.4, 2]);
        let genome = areas(
            json!({"cortical_mapping_dst": {"target": [rule, again]}}),
            json!({"cortical_mapping_dst": {"source": [back]}}),
        );
        let second = "1 mapping has no effect because an earlier associative mapping has the same source and destination: source to target";
        assert_eq!(limitations(&genome, false), [second]);
        assert_eq!(
            limitations(&genome, true),
            [
                second,
                "1 mapping grows synapses between all pairs of neurons, whatever its attractivity: source to target (50 %)",
                "1 mapping grows synapses whose weights begin at 0, whatever the size of its multiplier: source to target (-4)"
            ]
        );
    }

    /// A genome of two areas.
    fn areas(source: Value, target: Value) -> Genome {
        let mut blueprint = json!({"source": source, "target": target});
        for area in ["source", "target"] {
            blueprint[area]["block_boundaries"] = json!([2, 1, 1]);
            blueprint[area]["mp_charge_accumulation"] = json!(true);
        }
        let text = json!({"version": "2.1", "blueprint": blueprint}).to_string();
        Genome::parse(&text, &GenomeOptions::default())
            .unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    #[test]
    fn settings_of_areas_without_effect_are_reported() {
        let of = |area: Value| limitations(&areas(area, json!({})), true);
        assert_eq!(
            of(
                json!({"degeneration": 0.5, "postsynaptic_current": 5, "postsynaptic_current_max": 2})
            ),
            [
                "1 area has a degeneration, which has no effect: source (0.5)",
                "1 area has a postsynaptic_current_max that limits nothing: a current stays as it is, and a weight has a maximum of 255: source (2)"
            ]
        );
        // Neutral values.
        for area in [
            json!({"degeneration": 0, "postsynaptic_current_max": 0}),
            json!({"postsynaptic_current": 5, "postsynaptic_current_max": 5}),
            json!({"postsynaptic_current": 255, "postsynaptic_current_max": 35}),
            json!({"snooze_length": 2, "consecutive_fire_cnt_max": 3}),
        ] {
            assert_eq!(of(area.clone()), [""; 0], "{area}");
        }
        for (limit, is_reported) in [(0, true), (65_535, true), (1, false)] {
            let area = json!({"snooze_length": 2, "consecutive_fire_cnt_max": limit});
            let expected = "1 area has a snooze without a limit of consecutive firings, so that it has no effect: source (2 bursts)";
            assert_eq!(of(area), vec![expected; usize::from(is_reported)]);
        }
    }

    #[test]
    fn a_maximum_current_is_reported_where_learning_can_exceed_it() {
        let rule = json!(["projector", 1, 9, true, 1, 1, 1, 1]);
        for (maximum, is_reported) in [(35.0, true), (254.0, true), (255.0, false)] {
            let area = json!({"postsynaptic_current_max": maximum, "cortical_mapping_dst": {"target": [rule]}});
            let genome = areas(area, json!({}));
            assert_eq!(
                limitations(&genome, true).len(),
                usize::from(is_reported),
                "{maximum}"
            );
            assert_eq!(limitations(&genome, false), [""; 0], "{maximum}");
        }
    }

    #[test]
    fn patterns_that_nothing_stores_are_reported() {
        let shows = json!({"cortical_mapping_dst": {"target": [["memory", 1, 1, true]]}});
        assert_eq!(
            limitations(&areas(shows.clone(), json!({})), false),
            [
                "1 mapping shows patterns to an area that is no memory area, so that nothing is stored: source to target"
            ]
        );
        let memory = json!({"is_mem_type": true});
        assert_eq!(
            limitations(&areas(json!({}), memory.clone()), false),
            [
                "1 area is a memory area that no mapping shows any patterns, so that nothing is stored: target"
            ]
        );
        let genome = areas(shows, memory);
        assert_eq!(limitations(&genome, false), [""; 0]);
        assert_eq!(
            limitations(&genome, true),
            ["1 mapping is plastic without synapses that could learn: source to target"]
        );
    }

    #[test]
    fn a_window_that_no_neuron_can_fill_is_reported() {
        let plain = json!({});
        let refractory = json!({"refractory_period": 1});
        let limited = json!({"consecutive_fire_cnt_max": 2});
        let never = "1 mapping never gains weight because both ends must fire in every burst of the window, which they cannot: source to target";
        for (source, target, window, why) in [
            (&plain, &plain, 2.0, None),
            (&refractory, &refractory, 1.0, None),
            (&limited, &limited, 2.0, None),
            (
                &refractory,
                &plain,
                2.0,
                Some("window 2; source has a refractory period of 1"),
            ),
            (
                &plain,
                &refractory,
                2.0,
                Some("window 2; target has a refractory period of 1"),
            ),
            (
                &plain,
                &limited,
                3.0,
                Some("window 3; target fires at most 2 in a row"),
            ),
            // The window of the physiology is 3.
            (
                &plain,
                &refractory,
                0.0,
                Some("window 3; target has a refractory period of 1"),
            ),
        ] {
            let expected: Vec<String> = why.iter().map(|why| format!("{never} ({why})")).collect();
            assert_eq!(
                said(
                    source.clone(),
                    target.clone(),
                    rule_of([1.0, 1.0, 1.0, window])
                ),
                expected,
                "{source} {target} {window}"
            );
            assert_eq!(
                said(
                    source.clone(),
                    target.clone(),
                    rule_of([1.0, 0.0, 1.0, window])
                ),
                [""; 0],
                "without a gain"
            );
        }
    }
}
