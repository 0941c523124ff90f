//! Files as the format's engines write them, of all ages.

use serde_json::{Value, json};

use super::{document, pair, parse, synapses};
use crate::genome::{Genome, GenomeOptions, Morphology};

/// The error for a text that must be refused.
fn refused(text: &str) -> String {
    match Genome::parse(text, &GenomeOptions::default()) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("read: {text}"),
    }
}

/// A genome of one area with more sections.
fn with_sections(sections: Value) -> String {
    let mut document = json!({"blueprint": {"aaaaaa": {"block_boundaries": [1, 1, 1], "mp_charge_accumulation": true}}});
    for (key, value) in sections.as_object().expect("sections") {
        document[key] = value.clone();
    }
    document.to_string()
}

/// A genome of two areas, the first with more keys.
fn with_keys(keys: &[(&str, Value)]) -> Genome {
    let mut blueprint = pair([2, 1, 1], [2, 1, 1], json!(["projector", 1, 1, false]));
    for (key, value) in keys {
        blueprint["source"][key] = value.clone();
    }
    parse(&document(blueprint, json!({})))
}

#[test]
fn the_number_of_the_schema_counts_before_the_text_of_the_version() {
    for (sections, version) in [
        (json!({"version": "3.0"}), "3.0"),
        (json!({"version": 3}), "3"),
        (json!({"genome_schema_version": 3}), "3"),
        (
            json!({"version": "2.0", "genome_schema_version": 4, "modulators": {}}),
            "4",
        ),
        (json!({"version": "7.1", "genome_schema_version": 2.0}), "2"),
        (json!({"version": null, "genome_schema_version": 4}), "4"),
        (
            json!({"version": "2.1", "genome_schema_version": null}),
            "2.1",
        ),
    ] {
        let genome = parse(&with_sections(sections.clone()));
        assert_eq!(
            (genome.version(), genome.warnings()),
            (version, &[][..]),
            "{sections}"
        );
    }
    for (sections, expected) in [
        (
            json!({"version": "2.0", "genome_schema_version": 5}),
            "genome_schema_version 5 of the format; 2 to 4 are read",
        ),
        (
            json!({"version": "2.0", "genome_schema_version": 1}),
            "genome_schema_version 1 of the format; 2 to 4 are read",
        ),
        (
            json!({"genome_schema_version": -3}),
            "genome_schema_version -3 of the format; 2 to 4 are read",
        ),
        (
            json!({"version": "2.0", "genome_schema_version": "three"}),
            "genome_schema_version: \"three\" given; a whole number needed",
        ),
        (
            json!({"version": "3.1"}),
            "version \"3.1\" of the format; 2.0, 2.1 and 3.0 are read, or a genome_schema_version from 2 to 4",
        ),
        (json!({"version": null}), "not a genome: version is missing"),
    ] {
        assert_eq!(refused(&with_sections(sections)), expected);
    }
}

#[test]
fn sections_that_newer_engines_use_are_reported_unless_they_are_empty() {
    let warnings = |sections: Value| {
        let mut sections = sections;
        sections["genome_schema_version"] = json!(4);
        parse(&with_sections(sections)).warnings().to_vec()
    };
    assert_eq!(
        warnings(json!({"modulators": {}, "classifiers": null})),
        [""; 0]
    );
    assert_eq!(
        warnings(json!({"modulators": {"joy": {"type": "synaptic.reward"}}})),
        ["section \"modulators\" is known, but has no effect here"]
    );
    assert_eq!(
        warnings(json!({"physiology": {"rate_modulated_leak": true}})),
        ["key \"rate_modulated_leak\" is known, but has no effect here"]
    );
    let rule = |plastic: bool, key: &str, value: Value| {
        let mut rule = json!({"morphology_id": "projector", "postSynapticCurrent_multiplier": 1, "plasticity_flag": plastic});
        rule[key] = value;
        document(pair([1, 1, 1], [1, 1, 1], rule), json!({}))
    };
    assert_eq!(
        parse(&rule(false, "modulators", json!(["joy"]))).warnings(),
        [
            "area source: destination \"target\": rule 0: key \"modulators\" is known, but has no effect here"
        ]
    );
    for key in ["modulators", "punishment_source_area"] {
        assert_eq!(parse(&rule(true, key, json!([]))).warnings(), [""; 0]);
        let error = refused(&rule(true, key, json!("joy")));
        assert!(
            error.contains(&format!("mapping source to target: {key}: \"joy\" given")),
            "{error}"
        );
    }
}

#[test]
fn a_rule_without_a_flag_does_not_learn() {
    for flag in [None, Some(json!(null)), Some(json!(false))] {
        let mut rule = json!({"morphology_id": "projector", "morphology_scalar": [1, 1, 1], "postSynapticCurrent_multiplier": 1,
            "plasticity_constant": 1, "ltp_multiplier": 1});
        if let Some(flag) = flag {
            rule["plasticity_flag"] = flag;
        }
        let genome = parse(&document(pair([1, 1, 10], [1, 1, 10], rule), json!({})));
        assert_eq!(
            (genome.mappings()[0].plastic, synapses(&genome, 0).len()),
            (false, 10)
        );
        assert_eq!(genome.warnings(), [""; 0]);
    }
}

#[test]
fn null_is_accepted_where_no_value_has_an_effect() {
    let plain = with_keys(&[]);
    for key in [
        "cortical_name",
        "sub_group_id",
        "relative_coordinate",
        "dev_count",
        "leak_variability",
        "postsynaptic_current_max",
        "degeneration",
        "temporal_depth",
        "init_lifespan",
        "lifespan_growth_rate",
        "longterm_mem_threshold",
        "visualization",
        "2d_coordinate",
        "mp_learning_enabled",
    ] {
        let genome = with_keys(&[(key, json!(null))]);
        assert_eq!(
            (genome.areas(), genome.warnings()),
            (plain.areas(), plain.warnings()),
            "{key}"
        );
    }
    let mut rule = json!({"morphology_id": "projector", "postSynapticCurrent_multiplier": 1});
    for key in [
        "plasticity_flag",
        "plasticity_constant",
        "ltp_multiplier",
        "ltd_multiplier",
        "plasticity_window",
        "synaptic_delay_bursts",
        "plasticity_mode",
        "reward_source_area",
    ] {
        rule[key] = json!(null);
    }
    let genome = parse(&document(pair([2, 1, 1], [2, 1, 1], rule), json!({})));
    assert_eq!(
        (genome.mappings(), genome.warnings()),
        (plain.mappings(), plain.warnings())
    );
    // Where a value has an effect, null is none.
    let of_memory = json!({"aaaaaa": {"block_boundaries": [1, 1, 1], "is_mem_type": true, "temporal_depth": null}});
    assert_eq!(
        refused(&document(of_memory, json!({}))),
        "area aaaaaa: temporal_depth: null given; a number needed"
    );
    let learning = json!({"morphology_id": "projector", "postSynapticCurrent_multiplier": 1, "plasticity_flag": true,
        "plasticity_constant": null});
    let error = refused(&document(pair([1, 1, 1], [1, 1, 1], learning), json!({})));
    assert!(
        error.ends_with("plasticity_constant: null given; a number needed"),
        "{error}"
    );
}

#[test]
fn keys_of_memories_in_another_area_are_reported_unless_they_are_usual() {
    let usual = [
        ("temporal_depth", json!(1)),
        ("init_lifespan", json!(9)),
        ("lifespan_growth_rate", json!(1)),
        ("longterm_mem_threshold", json!(100)),
    ];
    assert_eq!(with_keys(&usual).warnings(), [""; 0]);
    for (key, _) in usual {
        assert_eq!(
            with_keys(&[(key, json!(7))]).warnings(),
            [format!(
                "area source: {key} has no effect: it is no memory area"
            )]
        );
        assert_eq!(
            with_keys(&[(key, json!(7)), ("is_mem_type", json!(true))]).warnings(),
            [""; 0]
        );
    }
}

#[test]
fn keys_next_to_the_physiology_are_read_as_keys_of_it() {
    let physiology = |sections: Value| {
        let mut sections = sections;
        sections["version"] = json!("2.0");
        let genome = parse(&with_sections(sections));
        assert_eq!(genome.warnings(), [""; 0]);
        let physiology = genome.physiology();
        (physiology.timestep_s, physiology.plasticity_queue_depth)
    };
    let oldest = json!({"burst_delay": 0.05, "plasticity_queue_depth": 7, "max_burst_count": 3, "max_age": 1,
        "evolution_burst_count": 50, "ipu_idle_threshold": 1000, "lifespan_mgmt_interval": 10});
    assert_eq!(physiology(oldest), (0.05, 7));
    assert_eq!(
        physiology(
            json!({"burst_delay": 0.05, "physiology": {"simulation_timestep": 0.05, "plasticity_queue_depth": 2}})
        ),
        (0.05, 2)
    );
    assert_eq!(
        physiology(
            json!({"burst_delay": null, "physiology": {"burst_delay": 0.05, "simulation_timestep": null, "plasticity_queue_depth": null}})
        ),
        (0.05, 3)
    );
    assert_eq!(
        refused(&with_sections(
            json!({"version": "2.0", "plasticity_queue_depth": 7, "physiology": {"plasticity_queue_depth": 3}})
        )),
        "plasticity_queue_depth: 7 given next to physiology, where it is 3"
    );
    assert_eq!(
        refused(&with_sections(json!({"version": "2.0", "burst_delay": 0}))),
        "physiology: burst_delay: 0 given; seconds above 0 and to 3600 needed"
    );
}

#[test]
fn a_definition_without_content_is_the_built_in_one() {
    for name in ["projector", "block_to_block", "lateral_+x", "placeholder"] {
        let of = |definitions: Value| {
            let rule = json!([name, 1, 1, false]);
            let genome = parse(&document(pair([2, 1, 1], [2, 1, 1], rule), definitions));
            (genome.mappings().to_vec(), synapses(&genome, 0))
        };
        let (built_in, _) = of(json!({}));
        for empty in [json!({}), json!(null)] {
            let mut definitions = json!({});
            definitions[name] = empty;
            let (mappings, made) = of(definitions);
            assert_eq!(mappings, built_in, "{name}");
            assert_eq!(made.is_empty(), name == "placeholder", "{name}");
        }
    }
    assert_eq!(
        refused(&document(
            json!({"aaaaaa": {"block_boundaries": [1, 1, 1]}}),
            json!({"mine": {}})
        )),
        "neuron_morphologies: \"mine\": type: nothing given; vectors, patterns, functions or composite needed"
    );
}

#[test]
fn the_oldest_definitions_have_no_type() {
    let definitions = json!({
        "steps": {"vectors": [[1, 0, 0]]},
        "pairs": {"patterns": [[[0, 0, 0], [1, "*", "*"]], [[1, 0, 0], [0, 0, 0]]]},
        "single": {"patterns": [["*", "*", "*"], [0, "?", "?"]]},
        "projector": {"functions": ["projector"]},
    });
    for (name, expected) in [
        ("steps", &[(0, 3)][..]),
        ("pairs", &[(0, 3), (1, 2)]),
        ("single", &[(0, 2), (1, 2)]),
        ("projector", &[(0, 2), (1, 3)]),
    ] {
        let blueprint = pair([2, 1, 1], [2, 1, 1], json!([name, 1, 1, false]));
        let genome = parse(&document(blueprint, definitions.clone()));
        let mut found: Vec<(u32, u32)> = synapses(&genome, 0)
            .iter()
            .map(|synapse| (synapse.source, synapse.target))
            .collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{name}");
        assert_eq!(genome.warnings(), [""; 0]);
    }
}

#[test]
fn keys_that_the_type_of_a_morphology_does_not_have_are_reported() {
    let warnings = |definition: Value| {
        let blueprint =
            json!({"aaaaaa": {"block_boundaries": [1, 1, 1], "mp_charge_accumulation": true}});
        parse(&document(blueprint, json!({"m": definition})))
            .warnings()
            .to_vec()
    };
    let shown = json!({"type": "vectors", "parameters": {"vectors": [[0, 0, 1]], "patterns": []}, "class": "custom",
        "morphology_name": "m", "dimension_sensitive": true, "description": "", "vectors": null});
    assert_eq!(warnings(shown), [""; 0]);
    let one = json!({"type": "vectors", "parameters": {"vectors": [[0, 0, 1]], "patterns": [[["*", "*", "*"], [0, 0, 0]]]}, "chance": 0.5});
    assert_eq!(
        warnings(one),
        ["chance", "patterns"]
            .map(|key| format!("neuron_morphologies: \"m\": key \"{key}\" has no effect"))
    );
    let function = json!({"type": "functions", "parameters": {"src_seed": [1, 1, 1]}});
    assert_eq!(
        warnings(function),
        ["neuron_morphologies: \"m\": key \"src_seed\" has no effect"]
    );
}

#[test]
fn an_id_of_seven_characters_is_padded_and_reported() {
    let mut blueprint = json!({});
    for code in ["___bbx", "___bby", "___bbz"] {
        blueprint[format!("_____10c-c_avoid-cx-{code}-i")] = json!(1);
    }
    blueprint["_____10c-c_avoid-nx-mp_acc-b"] = json!(true);
    blueprint["_____10c-c_avoid-cx-dstmap-d"] =
        json!({"c_avoid": [["projector", 1, 1, false]], "c_avoid_": [["projector", 1, 1, false]]});
    let genome = parse(&document(blueprint, json!({})));
    assert_eq!(
        (genome.area("c_avoid"), genome.area("c_avoid_")),
        (Some(0), Some(0))
    );
    assert_eq!(genome.areas()[0].id.bytes(), *b"c_avoid_");
    assert_eq!(genome.mappings().len(), 2);
    assert_eq!(
        genome.warnings(),
        [
            "area c_avoid_: the id \"c_avoid\" has seven characters, not six or eight; one _ is added"
        ]
    );
}

#[test]
fn a_byte_order_mark_is_skipped() {
    let text = with_sections(json!({"version": "2.0"}));
    assert_eq!(parse(&format!("\u{feff}{text}")), parse(&text));
    let error = refused("\u{feff}{\"version\": NaN}");
    assert_eq!(
        error,
        "not JSON: NaN at line 1; JSON has only finite numbers"
    );
    let path = std::env::temp_dir().join(format!("tectum-marked-{}.json", std::process::id()));
    std::fs::write(&path, format!("\u{feff}{text}")).expect("writable");
    let genome = Genome::read(&path, &GenomeOptions::default());
    std::fs::remove_file(&path).expect("it was there");
    assert_eq!(genome.expect("a genome"), parse(&text));
}

#[test]
fn the_examples_of_the_newer_loader_are_refused_as_what_they_are() {
    let areas = json!({"sensory": {"cortical_id": "sens_1", "cortical_neuron_count": 100, "cortical_mapping_dstn": {}}});
    let what = "cortical_areas: a list of areas by name, as in FEAGI's example_fp32_genome.json, is not a blueprint; the areas of a genome are the keys of blueprint, by id";
    for (text, place) in [
        (
            json!({"version": "2.0", "blueprint": {"cortical_areas": areas}, "morphologies": {}}),
            "blueprint: ",
        ),
        (json!({"cortical_areas": areas, "physiology": {}}), ""),
    ] {
        let error = Genome::parse(&text.to_string(), &GenomeOptions::default());
        let error = error.expect_err("no genome");
        assert_eq!(
            (error.kind(), error.to_string()),
            (tectum::ErrorKind::Unsupported, format!("{place}{what}"))
        );
    }
}

#[test]
fn a_genome_of_the_newest_schema_is_read_like_one_of_the_oldest() {
    let mut newest: Value = serde_json::from_str(&document(
        pair([1, 1, 10], [1, 1, 10], json!(["projector", 1, 1, false])),
        json!({}),
    ))
    .expect("JSON");
    let oldest = parse(&newest.to_string());
    newest["genome_schema_version"] = json!(4);
    newest["modulators"] = json!({});
    let newest = parse(&newest.to_string());
    assert_eq!(
        (newest.areas(), newest.mappings()),
        (oldest.areas(), oldest.mappings())
    );
    assert!(matches!(
        newest.mappings()[0].morphology,
        Morphology::Voxels(_)
    ));
    assert_eq!(
        newest.weight_loss().evidence,
        "the file has genome_schema_version 4"
    );
}
