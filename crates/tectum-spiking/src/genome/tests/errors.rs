//! Rejected genomes and their error messages.

use serde_json::{Value, json};

use super::document;
use crate::genome::{Genome, GenomeOptions};

/// The beginning of the error for a text that must be rejected.
fn refused(text: &str) -> String {
    match Genome::parse(text, &GenomeOptions::default()) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("read: {text}"),
    }
}

/// A genome of one area with one change.
fn area(key: &str, value: Value) -> String {
    let mut area = json!({"block_boundaries": [2, 2, 2]});
    area[key] = value;
    document(json!({"aaaaaa": area}), json!({}))
}

/// A genome of one area that is mapped to itself by one rule.
fn rule(rule: Value) -> String {
    area("cortical_mapping_dst", json!({"aaaaaa": [rule]}))
}

/// A genome whose only morphology is invalid.
fn morphology(definition: Value) -> String {
    document(
        json!({"aaaaaa": {"block_boundaries": [1, 1, 1]}}),
        json!({"m": definition}),
    )
}

fn flat(fields: &[(&str, Value)]) -> String {
    let base = ["___bbx", "___bby", "___bbz"]
        .map(|code| (format!("_____10c-aaaaaa-cx-{code}-i"), json!(2)));
    let given = fields
        .iter()
        .map(|(key, value)| (format!("_____10c-aaaaaa-{key}"), value.clone()));
    document(
        Value::Object(base.into_iter().chain(given).collect()),
        json!({}),
    )
}

fn section(key: &str, value: Value) -> String {
    let mut document =
        json!({"version": "2.0", "blueprint": {"aaaaaa": {"block_boundaries": [1, 1, 1]}}});
    document[key] = value;
    document.to_string()
}

#[test]
fn each_fault_is_named_with_area_and_key() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let rules =
        json!({"type": "patterns", "parameters": {"patterns": vec![[["*", "*", "*"]; 2]; 5000]}});
    let of_rule = "area aaaaaa: cortical_mapping_dst: destination \"aaaaaa\": rule 0: ";
    let of_morphology = "neuron_morphologies: \"m\": ";
    let in_rule = |text: &str| format!("{of_rule}{text}");
    let in_morphology = |text: &str| format!("{of_morphology}{text}");
    let cases: Vec<(String, String)> = vec![
        (String::new(), "not JSON: EOF".into()),
        ("{\"version\"".into(), "not JSON: EOF".into()),
        ("{} {}".into(), "not JSON: trailing".into()),
        (deep, "not JSON: recursion limit exceeded at line 1 column 128".into()),
        ("{\"version\": \"2.0\", \"version\": \"2.0\"}".into(), "not JSON: key \"version\" occurs twice at line 1".into()),
        ("[]".into(), "not a genome: an object needed".into()),
        ("{}".into(), "not a genome: version is missing".into()),
        ("{\"version\": \"2.0\"}".into(), "not a genome: blueprint is missing".into()),
        ("{\"version\": \"1.0\", \"blueprint\": {}}".into(), "version \"1.0\" of the format; 2.0, 2.1 and 3.0 are read, or a genome_schema_version from 2 to 4".into()),
        ("{\"version\": true, \"blueprint\": {}}".into(), "version: true given; a text needed".into()),
        (document(json!([]), json!({})), "blueprint: an object needed".into()),
        (document(json!({}), json!({})), "blueprint: it has no areas".into()),
        (document(json!({"aaaaaa": 1}), json!({})), "blueprint: area \"aaaaaa\": an object needed".into()),
        (document(json!({"aaaa": {}}), json!({})), "blueprint: area id \"aaaa\": six to eight ASCII characters".into()),
        (document(json!({"_power": {}, "___pwr": {}}), json!({})), "blueprint: \"_power\" and \"___pwr\" are both area _power".into()),
        (document(json!({"_____10c-aaaaaa-cx-___bbx-i": 1, "bbbbbb": {}}), json!({})), "blueprint: key \"bbbbbb\": an area of the hierarchical form".into()),
        // Sizes.
        (document(json!({"aaaaaa": {}}), json!({})), "area aaaaaa: block_boundaries: x is missing".into()),
        (area("block_boundaries", json!([1, 1])), "area aaaaaa: block_boundaries: an array of 2 given; three numbers needed".into()),
        (area("block_boundaries", json!([0, 1, 1])), "area aaaaaa: block_boundaries[0]: 0 is not from 1 to 1048576".into()),
        (area("block_boundaries", json!([1, -3, 1])), "area aaaaaa: block_boundaries[1]: -3 is not from".into()),
        (area("block_boundaries", json!([1, 1, 1.5])), "area aaaaaa: block_boundaries[2]: 1.5 is not a whole number".into()),
        (area("block_boundaries", json!([1, 1, "9"])), "area aaaaaa: block_boundaries[2]: \"9\" given; a number needed".into()),
        (
            area("block_boundaries", json!([10_000, 10_000, 10_000])),
            "area aaaaaa: block_boundaries: 10000 × 10000 × 10000 voxels of 1 neurons make 1000000000000".into(),
        ),
        (area("block_boundaries", json!([1_048_576, 1_048_576, 1_048_576])), "area aaaaaa: block_boundaries: 1048576 × 1048576 × 1048576 voxels".into()),
        (area("block_boundaries", json!([1u64 << 62, 4, 1])), "area aaaaaa: block_boundaries[0]: 4611686018427388000 is not from 1".into()),
        (
            document(
                json!({"aaaaaa": {"block_boundaries": [1024, 1024, 1024]}, "bbbbbb": {"block_boundaries": [1024, 1024, 1024], "per_voxel_neuron_cnt": 2}}),
                json!({}),
            ),
            "area bbbbbb: block_boundaries: 1024 × 1024 × 1024 voxels of 2 neurons make 3221225472 with the areas before; at most 2147483648".into(),
        ),
        (area("per_voxel_neuron_cnt", json!(0)), "area aaaaaa: per_voxel_neuron_cnt: 0 is not from 1 to 65536".into()),
        (area("cortical_dimensions", json!([3, 2, 2])), "area aaaaaa: \"block_boundaries[0]\" and \"cortical_dimensions[0]\" differ".into()),
        // Properties.
        (area("firing_threshold", json!(null)), "area aaaaaa: firing_threshold: null given; a number needed".into()),
        (area("firing_threshold", json!(-1)), "area aaaaaa: firing_threshold: -1 is not from 0 to 1000000000".into()),
        (area("firing_threshold_increment", json!(1)), "area aaaaaa: firing_threshold_increment: 1 given; three numbers needed".into()),
        (area("refractory_period", json!(65_536)), "area aaaaaa: refractory_period: 65536 is not from 0 to 65535".into()),
        (area("snooze_length", json!(0.5)), "area aaaaaa: snooze_length: 0.5 is not a whole number".into()),
        (area("leak_coefficient", json!("10")), "area aaaaaa: leak_coefficient: \"10\" given; a number needed".into()),
        (area("leak_coefficient", json!(-0.1)), "area aaaaaa: leak_coefficient: -0.1 is not from 0 to".into()),
        (area("neuron_excitability", json!([1])), "area aaaaaa: neuron_excitability: an array of 1 given; a number needed".into()),
        (area("postsynaptic_current", json!(-1)), "area aaaaaa: postsynaptic_current: -1 is not from 0 to 1000000".into()),
        (area("synapse_attractivity", json!(100.5)), "area aaaaaa: synapse_attractivity: 100.5 is not from 0 to 100".into()),
        (area("mp_charge_accumulation", json!(1)), "area aaaaaa: mp_charge_accumulation: 1 given; true or false needed".into()),
        (area("is_mem_type", json!("yes")), "area aaaaaa: is_mem_type: \"yes\" given; true or false needed".into()),
        (area("cortical_name", json!(7)), "area aaaaaa: cortical_name: 7 given; a text needed".into()),
        (flat(&[("cx-memory-b", json!(true)), ("cx-tmpdpt-i", json!(0))]), "area aaaaaa: _____10c-aaaaaa-cx-tmpdpt-i: 0 is not from 1 to 65535".into()),
        (flat(&[("nx-fire_t-f", json!(true))]), "area aaaaaa: _____10c-aaaaaa-nx-fire_t-f: true given; a number needed".into()),
        (
            flat(&[("nx-fire_t-f", json!(1)), ("cx-fire_t-i", json!(2))]),
            "area aaaaaa: \"_____10c-aaaaaa-nx-fire_t-f\" and \"_____10c-aaaaaa-cx-fire_t-i\" differ".into(),
        ),
        // Mappings.
        (area("cortical_mapping_dst", json!([])), "area aaaaaa: cortical_mapping_dst: an array of 0 given; an object needed".into()),
        (area("cortical_mapping_dst", json!({"bbbbbb": []})), "area aaaaaa: cortical_mapping_dst: destination \"bbbbbb\" is no area of the genome".into()),
        (area("cortical_mapping_dst", json!({"bb": []})), "area aaaaaa: cortical_mapping_dst: area id \"bb\": six".into()),
        (
            area("cortical_mapping_dst", json!({"aaaaaa": 1})),
            "area aaaaaa: cortical_mapping_dst: destination \"aaaaaa\": 1 given; an array of rules needed".into(),
        ),
        (rule(json!(null)), in_rule("null given; an array or an object needed")),
        (rule(json!(["projector", 1, 1])), in_rule("3 parts given; 4 to 9 needed")),
        (rule(json!([1, 1, 1, false])), in_rule("morphology_id: 1 given; a text needed")),
        (rule(json!(["nothing", 1, 1, false])), in_rule("morphology \"nothing\" is unknown; known: block_to_block, ")),
        (rule(json!(["projector", [1, 1], 1, false])), in_rule("morphology_scalar: an array of 2 given; one number or three")),
        (rule(json!(["projector", 1e7, 1, false])), in_rule("morphology_scalar: 10000000.0 given; one number or three, of at most 1000000")),
        (rule(json!(["projector", 1, 256, false])), in_rule("postSynapticCurrent_multiplier: 256 given; -255 to 255 needed")),
        (rule(json!(["projector", 1, 0.5, false])), in_rule("postSynapticCurrent_multiplier: 0.5 is not a whole number")),
        (rule(json!(["projector", 1, 1, 0])), in_rule("plasticity_flag: 0 given; true or false needed")),
        (rule(json!(["projector", 1, 1, true, "1"])), in_rule("plasticity_constant: \"1\" given; a number needed")),
        (rule(json!({"morphology_id": "projector", "plasticity_flag": false})), in_rule("postSynapticCurrent_multiplier is missing")),
        (rule(json!({"postSynapticCurrent_multiplier": 1, "plasticity_flag": false})), in_rule("morphology_id is missing")),
        // Morphologies.
        (document(json!({"aaaaaa": {"block_boundaries": [1, 1, 1]}}), json!([])), "neuron_morphologies: an array of 0 given; an object needed".into()),
        (morphology(json!(1)), in_morphology("1 given; an object needed")),
        (morphology(json!({"type": "spirals"})), in_morphology("type: \"spirals\" given; vectors, patterns, functions or composite needed")),
        (morphology(json!({"parameters": {}})), in_morphology("type: nothing given; vectors")),
        (morphology(json!({"type": "vectors", "parameters": {}})), in_morphology("parameters: vectors: an array needed")),
        (
            morphology(json!({"type": "vectors", "parameters": {"vectors": [[1, 2]]}})),
            in_morphology("parameters: vectors: \"[1,2]\": three whole numbers needed"),
        ),
        (morphology(json!({"type": "vectors", "parameters": {"vectors": [[1, 2, 0.5]]}})), in_morphology("parameters: vectors: \"[1,2,0.5]\": three")),
        (morphology(json!({"type": "vectors", "parameters": {"vectors": [[1, 2, 1e10]]}})), in_morphology("parameters: vectors: ")),
        (morphology(json!({"type": "patterns", "parameters": {"patterns": [[["*", "*", "*"]]]}})), in_morphology("parameters: patterns: ")),
        (morphology(json!({"type": "patterns", "parameters": {"patterns": [[["*", "*", "*"], ["*", "*", "x"]]]}})), in_morphology("parameters: patterns: ")),
        (morphology(rules), in_morphology("parameters: patterns: 5000 given; at most 4096")),
        (
            morphology(
                json!({"type": "composite", "parameters": {"src_seed": [0, 1, 1], "src_pattern": [[1, 0], [1, 0], [1, 0]], "mapper_morphology": "projector"}}),
            ),
            in_morphology("parameters: src_seed of three whole numbers from 1"),
        ),
        // Other sections.
        (section("physiology", json!(1)), "physiology: 1 given; an object needed".into()),
        (section("physiology", json!({"burst_delay": 0})), "physiology: burst_delay: 0 given; seconds above 0 and to 3600 needed".into()),
        (section("physiology", json!({"burst_delay": 0.1, "simulation_timestep": 0.2})), "physiology: simulation_timestep and burst_delay differ".into()),
        (section("physiology", json!({"plasticity_queue_depth": -1})), "physiology: plasticity_queue_depth: -1 given; a whole number".into()),
        (section("physiology", json!({"quantization_precision": 8})), "physiology: quantization_precision: 8 given; a text needed".into()),
        (section("brain_regions", json!([1])), "brain_regions: an array of 1 given; an object needed".into()),
        (section("brain_regions", json!({"r": {"areas": "aaaaaa"}})), "brain_regions: \"r\": areas: \"aaaaaa\" given; an array needed".into()),
        (section("genome_title", json!({})), "genome_title: an object given; a text needed".into()),
    ];
    for (text, expected) in cases {
        let error = refused(&text);
        let shown = text.chars().take(300).collect::<String>();
        assert!(
            error.starts_with(&expected),
            "{shown}\n found {error}\nneeded {expected}"
        );
        assert!(!error.contains('\n') && error.len() < 400, "{error}");
    }
}

#[test]
fn vectors_multiplied_by_many_scalars_are_bounded() {
    let vectors = (0..4096).map(|x| json!([x, 0, 0])).collect::<Vec<_>>();
    let rules = (0..200)
        .map(|scalar| json!(["m", scalar, 1, false]))
        .collect::<Vec<_>>();
    let text = document(
        json!({"aaaaaa": {"block_boundaries": [2, 1, 1], "cortical_mapping_dst": {"aaaaaa": rules}}}),
        json!({"m": {"type": "vectors", "parameters": {"vectors": vectors}}}),
    );
    assert!(
        refused(&text)
            .contains("rule 64: morphology \"m\": more than 262144 vectors in all mappings"),
        "{}",
        refused(&text)
    );
}

#[test]
fn a_mode_of_learning_that_is_unknown_is_refused_by_name() {
    let learning = |morphology: &str, plastic: bool, key: &str, value: Value| {
        let mut fields = json!({"morphology_id": morphology, "postSynapticCurrent_multiplier": 1, "plasticity_flag": plastic});
        fields[key] = value;
        rule(fields)
    };
    let prefix = "area aaaaaa: cortical_mapping_dst: destination \"aaaaaa\": rule 0: mapping aaaaaa to aaaaaa: ";
    let known =
        "; the only known mode of learning is \"stdp\", by coincidence, which uses no reward";
    for (text, expected) in [
        (
            learning("projector", true, "plasticity_mode", json!("rstdp")),
            "plasticity_mode: \"rstdp\" given",
        ),
        (
            learning("associative_memory", false, "plasticity_mode", json!(2)),
            "plasticity_mode: 2 given",
        ),
        (
            learning("projector", true, "reward_source_area", json!("aaaaaa")),
            "reward_source_area: \"aaaaaa\" given",
        ),
    ] {
        assert_eq!(refused(&text), format!("{prefix}{expected}{known}"));
    }
    // The known mode, none, and a mode of synapses that do not learn.
    for text in [
        learning("projector", true, "plasticity_mode", json!("stdp")),
        learning("projector", true, "plasticity_mode", json!(null)),
        learning("projector", false, "plasticity_mode", json!("rstdp")),
    ] {
        let genome = Genome::parse(&text, &GenomeOptions::default()).expect("read");
        assert!(
            genome
                .warnings()
                .iter()
                .all(|warning| !warning.contains("plasticity_mode")),
            "{:?}",
            genome.warnings()
        );
    }
}

#[test]
fn a_scalar_without_effect_is_a_warning() {
    let warnings = |morphology: &str, scalar: Value| {
        let text = rule(json!([morphology, scalar, 1, false]));
        let genome = Genome::parse(&text, &GenomeOptions::default()).expect("read");
        let warnings = genome.warnings().iter();
        warnings
            .filter(|warning| warning.contains("scalar"))
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(warnings("lateral_+x", json!(2)), [""; 0]);
    assert_eq!(warnings("projector", json!([1, 1, 1])), [""; 0]);
    assert_eq!(
        warnings("projector", json!([1, 2, 1])),
        [
            "area aaaaaa: destination \"aaaaaa\": rule 0: morphology_scalar has no effect: \"projector\" has no vectors"
        ]
    );
}
