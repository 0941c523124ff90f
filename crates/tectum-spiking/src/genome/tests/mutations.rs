//! Genomes whose parts were swapped, dropped and replaced: accepted or rejected, never a panic, and
//! accepted ones are consistent. `tests/parser_fuzz.rs` mutates bytes.

use serde_json::{Value, json};

use crate::genome::{Genome, GenomeOptions, UnitPolicy};

const MUTATIONS: usize = 2_000;

/// Genomes that use most of the format.
fn seeds() -> [Value; 2] {
    let flat = json!({"version": "2.0", "blueprint": {
        "_____10c-___pwr-cx-___bbx-i": 1, "_____10c-___pwr-cx-___bby-i": 1, "_____10c-___pwr-cx-___bbz-i": 1, "_____10c-___pwr-nx-pstcr_-f": 500,
        "_____10c-___pwr-cx-dstmap-d": {"o__mot": [["rows", [1, 1, 1], 1, false], ["projector", [1, 1, 1], -30, true, 1, 100, 1]]},
        "_____10c-o__mot-cx-__name-t": "motor", "_____10c-o__mot-cx-_group-t": "OPU", "_____10c-o__mot-nx-mp_acc-b": true,
        "_____10c-o__mot-cx-___bbx-i": 4, "_____10c-o__mot-cx-___bby-i": 3, "_____10c-o__mot-cx-___bbz-i": 2, "_____10c-o__mot-cx-_n_cnt-i": 2,
        "_____10c-o__mot-nx-leak_c-f": 10, "_____10c-o__mot-nx-excite-f": 50, "_____10c-o__mot-cx-synatt-f": 50,
        "_____10c-o__mot-cx-dstmap-d": {"o__mot": [["rows", 1, 1.0, false, 1, 1, 1], ["steps", [2], 3, false]], "___pwr": [["memory", 1, 1, false]]},
    }, "neuron_morphologies": {
        "rows": {"type": "patterns", "parameters": {"patterns": [[["*", "?", 1], [2, "*", "!"]], [["*", "*", "*"], ["?-1:?+1", 0, "0..1"]]]}},
        "steps": {"type": "vectors", "parameters": {"vectors": [[0, 0, 1], [1, 0, -1]]}},
        "memory": {"type": "functions", "parameters": {}},
    }, "physiology": {"burst_delay": 0.025, "plasticity_queue_depth": 3}, "brain_regions": {"root": {"title": "r", "areas": ["o__mot"]}}});
    let functions = [
        "projector",
        "projector_xz",
        "project_from_end_y",
        "expander",
        "expander_x",
        "reducer_x",
        "bitmask_encoder_y",
        "bitmask_decoder_z",
        "tile",
        "lateral_pairs_x",
        "block_connection",
        "last_to_first",
        "randomizer",
        "sweeper",
        "rotator_z",
        "all_to_all",
        "lateral_-z",
        "blocks",
    ];
    let rules = functions.map(|name| json!([name, [1, 1, 1], 2, false]));
    let hierarchical = json!({"version": "2.1", "blueprint": {
        "b19fbW90X18=": {"block_boundaries": [6, 4, 3], "relative_coordinate": [0, -3, 7], "firing_threshold": 1.5, "firing_threshold_increment": [0, 0.5, 1],
            "leak_coefficient": 0.25, "neuron_excitability": 0.5, "cortical_mapping_dst": {"cdeep1": rules, "b19fbW90X18=": [
                {"morphology_id": "projector", "morphology_scalar": 1, "postSynapticCurrent_multiplier": -2, "plasticity_flag": true,
                 "plasticity_constant": 1, "ltp_multiplier": 2, "ltd_multiplier": 1, "plasticity_window": 3, "synapse_attractivity": 40}]}},
        "cdeep1": {"cortical_dimensions": {"x": 2, "y": 5, "z": 4}, "cortical_neuron_per_vox_count": 3, "is_mem_type": true, "temporal_depth": 4},
    }, "neuron_morphologies": {"blocks": {"type": "composite", "parameters": {
        "src_seed": [2, 2, 1], "src_pattern": [[1, 0], [1, 1], [1, 0]], "mapper_morphology": "projector"}}}});
    [flat, hierarchical]
}

/// Numbers of a fixed sequence (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let word = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((word ^ (word >> 31)) % bound as u64) as usize
    }
}

/// The values of a tree, the root first, as paths.
fn paths(value: &Value, path: &str, found: &mut Vec<String>) {
    found.push(path.to_owned());
    let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Array(values) => values
            .iter()
            .enumerate()
            .for_each(|(index, value)| paths(value, &format!("{path}/{index}"), found)),
        Value::Object(fields) => fields
            .iter()
            .for_each(|(key, value)| paths(value, &format!("{path}/{}", escaped(key)), found)),
        _ => {}
    }
}

/// Replaces, swaps, drops or duplicates one value.
fn mutate(tree: &mut Value, other: &Value, numbers: &mut Numbers) {
    let extremes = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1),
        json!(1e300),
        json!(255.5),
        json!(1u64 << 40),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(""),
        json!("*"),
        json!("!"),
        json!([]),
        json!({}),
        json!([1, 1, 1]),
        json!(1_048_576),
        json!(65_536),
        json!("?-9223372036854775808:?+9223372036854775807"),
    ];
    let mild = [
        json!(1),
        json!(2),
        json!(3),
        json!(-2),
        json!(0),
        json!(0.5),
        json!([2, 3, 1]),
        json!("?"),
        json!("!"),
        json!("*"),
        json!("?+"),
        json!("1..2"),
        json!("tile"),
        json!("sweeper"),
        json!("bitmask_decoder_x"),
        json!("rotator_z"),
        json!("projector_yz"),
        json!(true),
        json!(false),
    ];
    let list = |tree: &Value| {
        let mut found = Vec::new();
        paths(tree, "", &mut found);
        found.remove(0);
        found
    };
    let (here, there) = (list(tree), list(other));
    let place = &here[numbers.below(here.len())];
    let replacement = match numbers.below(8) {
        0 => other.pointer(&there[numbers.below(there.len())]).cloned(),
        1 => tree.pointer(&here[numbers.below(here.len())]).cloned(),
        2 => Some(extremes[numbers.below(extremes.len())].clone()),
        _ => Some(mild[numbers.below(mild.len())].clone()),
    };
    let Some(value) = tree.pointer_mut(place) else {
        return;
    };
    match (numbers.below(4), value) {
        (0, Value::Array(values)) if !values.is_empty() => {
            drop(values.remove(numbers.below(values.len())))
        }
        (0, Value::Object(fields)) if !fields.is_empty() => {
            let key = fields.keys().nth(numbers.below(fields.len())).cloned();
            key.map(|key| fields.shift_remove(&key));
        }
        (1, Value::Array(values)) => values.extend(replacement),
        (1, Value::Object(fields)) => {
            let key = fields
                .keys()
                .nth(numbers.below(fields.len().max(1)))
                .map(|key| key.replace('x', "y"));
            key.zip(replacement)
                .map(|(key, value)| fields.insert(key, value));
        }
        (_, value) => *value = replacement.unwrap_or_default(),
    }
}

#[test]
fn mutated_genomes_are_read_or_refused_and_hold_together() {
    let mut numbers = Numbers(6);
    let seeds = seeds();
    let mut read = 0;
    for seed in &seeds {
        check(
            &Genome::parse(&seed.to_string(), &GenomeOptions::default()).expect("a seed"),
            "a seed",
        );
    }
    for _ in 0..MUTATIONS {
        let first = numbers.below(2);
        let mut tree = seeds[first].clone();
        for _ in 0..=numbers.below(2) {
            mutate(&mut tree, &seeds[1 - first], &mut numbers);
        }
        let units = [
            UnitPolicy::Detect,
            UnitPolicy::Legacy,
            UnitPolicy::Detect,
            UnitPolicy::Fraction,
        ][numbers.below(4)];
        let text = tree.to_string();
        match Genome::parse(
            &text,
            &GenomeOptions {
                units,
                strict: numbers.below(2) == 0,
                ..GenomeOptions::default()
            },
        ) {
            Ok(genome) => {
                read += 1;
                check(&genome, &text);
            }
            Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
        }
    }
    // Enough are accepted to test what is accepted, and enough are rejected to test the errors.
    assert!(
        (MUTATIONS / 10..MUTATIONS * 9 / 10).contains(&read),
        "{read}"
    );
}

/// Neurons without gaps, synapses within their areas, no duplicates in a mapping, no more than the
/// estimate.
fn check(genome: &Genome, text: &str) {
    let mut first = 0;
    for area in genome.areas() {
        assert_eq!(area.neurons.start, first, "{text}");
        assert_eq!(
            area.neurons.len() as u64,
            area.voxels() * u64::from(area.per_voxel),
            "{text}"
        );
        first = area.neurons.end;
    }
    let estimate = genome.estimate();
    if genome.neurons() > 100_000 || estimate.synapses > 1_000_000 {
        return;
    }
    for (index, estimated) in estimate.mappings.iter().enumerate() {
        let mapping = &genome.mappings()[index];
        let (from, to) = (
            &genome.areas()[mapping.source].neurons,
            &genome.areas()[mapping.destination].neurons,
        );
        let mut pairs = Vec::new();
        genome.mapping_synapses(index, from.clone(), 1, &mut |synapse| {
            assert!(
                from.contains(&synapse.source) && to.contains(&synapse.target),
                "{synapse:?}: {text}"
            );
            pairs.push((synapse.source, synapse.target));
        });
        let count = pairs.len() as u64;
        assert!(
            count <= estimated.synapses && (!estimated.exact || count == estimated.synapses),
            "mapping {index}: {count}, {estimated:?}: {text}"
        );
        pairs.sort_unstable();
        pairs.dedup();
        assert_eq!(pairs.len() as u64, count, "mapping {index}: {text}");
    }
}
