//! Settings of a genome that have no effect in its network, or another one than the file states.

use serde::Serialize;

use super::mapping_rules::{memory_areas, rule};
use crate::genome::{Genome, Mapping, Morphology, PlasticMorphology};

/// Mappings that a sentence names.
const MAX_NAMES: usize = 4;
/// A product of two floats that is this near to a whole number means that number.
const ROUNDING: f32 = 1e-3;

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
/// mappings that have it. If the synapses do not learn, nothing is said about learning.
pub fn limitations(genome: &Genome, learns: bool) -> Vec<String> {
    let about = |setting: &dyn Fn(&Mapping) -> Option<String>,
                 one: &str,
                 several: &str,
                 effect: &str| {
        let found: Vec<String> = genome
            .mappings()
            .iter()
            .filter_map(|mapping| Some(format!("{}{}", ends(genome, mapping), setting(mapping)?)))
            .collect();
        let count = if found.len() == 1 {
            format!("1 mapping {one}")
        } else {
            format!("{} mappings {several}", found.len())
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
    };
    let memories = memory_areas(genome);
    let sentences = [
        about(
            &replays,
            "replays",
            "replay",
            "what an area remembers, which is not supported",
        ),
        about(
            &delayed,
            "has a delay",
            "have a delay",
            "other than 1 burst, which has no effect (a spike arrives in the next burst)",
        ),
        about(
            &|mapping| second_association(genome, mapping),
            "has no effect",
            "have no effect",
            "because an earlier associative mapping connects the same two areas",
        ),
        if learns {
            about(
                &all_pairs,
                "grows synapses",
                "grow synapses",
                "between all pairs of neurons, whatever its attractivity",
            )
        } else {
            None
        },
        if learns {
            about(
                &|mapping| lethal(genome, mapping),
                "loses its whole weight",
                "lose their whole weight",
                "at the first loss, and sends nothing before it gains again",
            )
        } else {
            None
        },
        if learns {
            about(
                &rounded,
                "has a gain or loss",
                "have a gain or loss",
                "that is no whole number from 0 to 255, and becomes one",
            )
        } else {
            None
        },
        if learns {
            about(
                &|mapping| fixed(genome, mapping),
                "is plastic",
                "are plastic",
                "without a gain or loss, so that nothing is learnt",
            )
        } else {
            None
        },
        match learns {
            true => about(
                &|mapping| never_gains(genome, &memories, mapping),
                "never gains weight",
                "never gain weight",
                "because both ends must fire in every burst of the window, which they cannot",
            ),
            false => None,
        },
    ];
    sentences.into_iter().flatten().collect()
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
fn rounded(mapping: &Mapping) -> Option<String> {
    let steps = ["gain", "loss"].into_iter().zip(mapping.plasticity.steps());
    let changed = steps
        .map(|(name, step)| (name, step, step.round().clamp(0.0, 255.0)))
        .filter(|(_, step, taken)| (step - taken).abs() > ROUNDING);
    let changed: Vec<String> = changed
        .map(|(name, step, taken)| format!("{name} {step} becomes {taken:.0}"))
        .collect();
    (learns(mapping) && !changed.is_empty()).then(|| format!(" ({})", changed.join(", ")))
}

/// An associative mapping between two areas after the first one.
fn second_association(genome: &Genome, mapping: &Mapping) -> Option<String> {
    let ends = |mapping: &Mapping| {
        [
            mapping.source.min(mapping.destination),
            mapping.source.max(mapping.destination),
        ]
    };
    let mut same = genome
        .mappings()
        .iter()
        .filter(|other| other.grows() && ends(other) == ends(mapping));
    let is_first = same
        .next()
        .is_some_and(|first| std::ptr::eq(first, mapping));
    (mapping.grows() && !is_first).then(String::new)
}

/// The attractivity that synapses which grow do not have.
fn all_pairs(mapping: &Mapping) -> Option<String> {
    (mapping.grows() && mapping.attractivity < 100.0)
        .then(|| format!(" ({} %)", mapping.attractivity))
}

/// The weight that a single loss removes.
fn lethal(genome: &Genome, mapping: &Mapping) -> Option<String> {
    let rule =
        rule(genome, mapping).filter(|_| matches!(mapping.morphology, Morphology::Voxels(_)))?;
    let weight = mapping.weight();
    (weight > 0 && weight <= rule.loss).then(|| format!(" (weight {weight}, loss {})", rule.loss))
}

fn fixed(genome: &Genome, mapping: &Mapping) -> Option<String> {
    (learns(mapping) && rule(genome, mapping).is_none()).then(String::new)
}

/// Whether the file asks for synapses that learn.
fn learns(mapping: &Mapping) -> bool {
    mapping.plastic && matches!(mapping.morphology, Morphology::Voxels(_)) || mapping.grows()
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
        let rule = json!({"morphology_id": "associative_memory", "postSynapticCurrent_multiplier": 1, "plasticity_flag": true,
            "plasticity_constant": 1, "ltp_multiplier": 1, "ltd_multiplier": 1, "synapse_attractivity": 50});
        let text = json!({"version": "2.1", "blueprint": {
            "source": {"block_boundaries": [2, 1, 1], "mp_charge_accumulation": true, "cortical_mapping_dst": {"target": [rule]}},
            "target": {"block_boundaries": [2, 1, 1], "mp_charge_accumulation": true, "cortical_mapping_dst": {"source": [["associative_memory", 1, -1, true, 1, 2, 2]]}}}})
        .to_string();
        let genome = Genome::parse(&text, &GenomeOptions::default()).expect("a genome");
        let second = "1 mapping has no effect because an earlier associative mapping connects the same two areas: target to source";
        assert_eq!(limitations(&genome, false), [second]);
        assert_eq!(
            limitations(&genome, true),
            [
                second,
                "1 mapping grows synapses between all pairs of neurons, whatever its attractivity: source to target (50 %)"
            ]
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
