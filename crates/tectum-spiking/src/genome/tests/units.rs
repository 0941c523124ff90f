//! Units: detected, converted, rejected.

use serde_json::{Value, json};

use super::document;
use crate::genome::{AreaProperties, Genome, GenomeOptions, UnitPolicy, UnitReport};

fn read(area: Value, units: UnitPolicy) -> Result<(AreaProperties, UnitReport), String> {
    let mut area = area;
    area["block_boundaries"] = json!([1, 1, 1]);
    let text = document(
        json!({"aaaaaa": area, "bbbbbb": {"block_boundaries": [1, 1, 1]}}),
        json!({}),
    );
    let genome = Genome::parse(
        &text,
        &GenomeOptions {
            units,
            strict: false,
            ..GenomeOptions::default()
        },
    )
    .map_err(|error| error.to_string())?;
    Ok((genome.areas()[0].properties.clone(), genome.units().clone()))
}

/// The file's values, the policy, and leak, excitability and current in the engine's units.
type Case = (Value, UnitPolicy, [f32; 2], u8);

#[test]
fn values_are_converted_by_the_stated_rules() {
    use UnitPolicy::{Detect, Fraction, Legacy};
    let cases: [Case; 17] = [
        (json!({}), Detect, [0.0, 1.0], 1),
        (
            json!({"leak_coefficient": 0.5, "neuron_excitability": 0.5, "postsynaptic_current": 255}),
            Detect,
            [0.5, 0.5],
            255,
        ),
        (
            json!({"leak_coefficient": 1, "neuron_excitability": 1}),
            Fraction,
            [1.0, 1.0],
            1,
        ),
        // No value exceeds 1, so nothing indicates a percentage: a fraction.
        (json!({"neuron_excitability": 1}), Detect, [0.0, 1.0], 1),
        (json!({"neuron_excitability": 1}), Legacy, [0.0, 0.01], 1),
        (json!({"neuron_excitability": 5}), Detect, [0.0, 0.05], 1),
        (json!({"neuron_excitability": 100}), Detect, [0.0, 1.0], 1),
        // An amount of 10 leaves nothing of a potential below 1, and takes a tenth of a potential
        // of 100.
        (
            json!({"leak_coefficient": 10, "firing_threshold": 1}),
            Detect,
            [1.0, 1.0],
            1,
        ),
        (
            json!({"leak_coefficient": 10, "firing_threshold": 10}),
            Detect,
            [1.0, 1.0],
            1,
        ),
        (
            json!({"leak_coefficient": 10, "firing_threshold": 100}),
            Detect,
            [0.1, 1.0],
            1,
        ),
        (
            json!({"leak_coefficient": 10, "firing_threshold": 0}),
            Detect,
            [1.0, 1.0],
            1,
        ),
        (
            json!({"leak_coefficient": 0, "firing_threshold": 0}),
            Legacy,
            [0.0, 1.0],
            1,
        ),
        (
            json!({"leak_coefficient": 0.5, "firing_threshold": 2}),
            Legacy,
            [0.25, 1.0],
            1,
        ),
        // Each quantity is separate: a legacy leak implies nothing about the excitability.
        (
            json!({"leak_coefficient": 10, "neuron_excitability": 1}),
            Detect,
            [1.0, 1.0],
            1,
        ),
        (
            json!({"postsynaptic_current": 500}),
            Detect,
            [0.0, 1.0],
            255,
        ),
        (json!({"postsynaptic_current": 2.5}), Detect, [0.0, 1.0], 2),
        (
            json!({"postsynaptic_current": 3.0}),
            Fraction,
            [0.0, 1.0],
            3,
        ),
    ];
    for (area, policy, [leak, excitability], current) in cases {
        let (properties, _) =
            read(area.clone(), policy).unwrap_or_else(|error| panic!("{area} {policy:?}: {error}"));
        assert_eq!(
            (
                properties.leak,
                properties.excitability,
                properties.postsynaptic_current
            ),
            (leak, excitability, current),
            "{area} {policy:?}"
        );
    }
}

#[test]
fn legacy_values_are_refused_where_fractions_are_asked_for_and_legacy_has_its_bounds_too() {
    use UnitPolicy::{Fraction, Legacy};
    for (area, policy, expected) in [
        (
            json!({"leak_coefficient": 10}),
            Fraction,
            "area aaaaaa: leak_coefficient: 10 is not from 0 to 1; if the file is of the legacy unit",
        ),
        (
            json!({"leak_variability": 2}),
            Fraction,
            "area aaaaaa: leak_variability: 2 is not from 0 to 1; if",
        ),
        (
            json!({"neuron_excitability": 100}),
            Fraction,
            "area aaaaaa: neuron_excitability: 100 is not from 0 to 1; if",
        ),
        (
            json!({"postsynaptic_current": 500}),
            Fraction,
            "area aaaaaa: postsynaptic_current: 500 is not from 0 to 255; if",
        ),
        (
            json!({"postsynaptic_current": 0.5}),
            Fraction,
            "area aaaaaa: postsynaptic_current: 0.5 is not a whole number; if",
        ),
        (
            json!({"neuron_excitability": 101}),
            Legacy,
            "area aaaaaa: neuron_excitability: 101 is not from 0 to 100",
        ),
        (
            json!({"leak_coefficient": -1}),
            Legacy,
            "area aaaaaa: leak_coefficient: -1 is not from 0 to 1000000",
        ),
    ] {
        let error = read(area.clone(), policy).expect_err("refused");
        assert!(error.starts_with(expected), "{area}: {error}");
    }
}

#[test]
fn the_report_names_the_evidence_and_every_converted_value() {
    let area = json!({"leak_coefficient": 10, "firing_threshold": 4, "neuron_excitability": 0.5, "postsynaptic_current": 500});
    let (_, units) = read(area, UnitPolicy::Detect).expect("valid");
    let told = |report: &crate::genome::QuantityReport| {
        let converted = report
            .converted
            .iter()
            .map(|each| format!("{} {} {}>{}", each.area, each.key, each.given, each.taken))
            .collect::<Vec<_>>();
        (report.legacy, report.evidence.clone(), converted)
    };
    assert_eq!(
        told(&units.leak),
        (
            true,
            "area aaaaaa: \"leak_coefficient\": 10 exceeds 1".to_owned(),
            vec!["aaaaaa leak_coefficient 10>1".to_owned()]
        )
    );
    assert_eq!(
        told(&units.excitability),
        (false, "no value exceeds 1".to_owned(), vec![])
    );
    let evidence =
        "area aaaaaa: \"postsynaptic_current\": 500 exceeds 255 or has a fraction".to_owned();
    assert_eq!(
        told(&units.current),
        (
            true,
            evidence,
            vec!["aaaaaa postsynaptic_current 500>255".to_owned()]
        )
    );
    let (_, units) = read(json!({"neuron_excitability": 100}), UnitPolicy::Legacy).expect("valid");
    assert_eq!(
        told(&units.excitability),
        (
            true,
            "as requested".to_owned(),
            vec!["aaaaaa neuron_excitability 100>1".to_owned()]
        )
    );
}

#[test]
fn a_sentence_for_each_quantity_counts_its_conversions_and_gives_the_first() {
    let area = |leak: f64| json!({"block_boundaries": [1, 1, 1], "leak_coefficient": leak, "firing_threshold": 1, "mp_charge_accumulation": true});
    let ids = ["aaaaaa", "bbbbbb", "cccccc", "dddddd", "eeeeee"];
    let mut blueprint: serde_json::Map<String, Value> = ids
        .iter()
        .map(|id| ((*id).to_owned(), area(10.0)))
        .collect();
    blueprint.insert("ffffff".to_owned(), area(5.0));
    blueprint.insert("gggggg".to_owned(), area(1.0));
    let genome = Genome::parse(
        &document(Value::Object(blueprint), json!({})),
        &GenomeOptions::default(),
    )
    .expect("valid");
    let head = "units: leak is legacy, an amount of potential (area aaaaaa: \"leak_coefficient\": 10 exceeds 1); 6 values were converted: \
                10 became 1 (aaaaaa, bbbbbb, cccccc, dddddd and 1 more)";
    assert_eq!(
        genome.units().notes(1),
        [format!("{head}, and 1 other change")]
    );
    assert_eq!(
        genome.units().notes(9),
        [format!("{head}, 5 became 1 (ffffff)")]
    );
}
