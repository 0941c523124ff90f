//! Every morphology on boxes small enough to work out by hand.

use serde_json::{Value, json};

use super::{document, pair, parse, synapses};
use crate::genome::relation::{Axis, SourceRule, TargetRule};

/// Name, definition in the file, scalar, size of source and target, and the pairs of voxels:
/// `x y z` each in one hexadecimal digit.
type Case = (&'static str, Value, Value, [u32; 3], [u32; 3], &'static str);

/// No definition in the file: the built-in one is used.
fn none() -> Value {
    Value::Null
}

fn function() -> Value {
    json!({"type": "functions", "parameters": {}})
}

fn vectors(vectors: Value) -> Value {
    json!({"type": "vectors", "parameters": {"vectors": vectors}})
}

fn patterns(patterns: Value) -> Value {
    json!({"type": "patterns", "parameters": {"patterns": patterns}})
}

/// One pattern along x.
fn along_x(source: Value, target: Value) -> Value {
    patterns(json!([[[source, "*", "*"], [target, 0, 0]]]))
}

fn cases() -> Vec<Case> {
    let one = || json!([1, 1, 1]);
    let tile = |turns: Value| json!({"type": "composite", "parameters": {"src_seed": [2, 1, 1], "src_pattern": turns, "mapper_morphology": "projector"}});
    vec![
        (
            "block_to_block",
            none(),
            one(),
            [3, 1, 1],
            [2, 1, 1],
            "000>000 100>100",
        ),
        (
            "block_to_block",
            function(),
            one(),
            [1, 2, 2],
            [1, 2, 1],
            "000>000 010>010",
        ),
        // ⌊s·2 / 5⌋ = 0 0 0 1 1.
        (
            "projector",
            function(),
            one(),
            [5, 1, 1],
            [2, 1, 1],
            "000>000 100>000 200>000 300>100 400>100",
        ),
        // ⌊t·2 / 5⌋ = 0 0 0 1 1.
        (
            "projector",
            none(),
            one(),
            [2, 1, 1],
            [5, 1, 1],
            "000>000 000>100 000>200 100>300 100>400",
        ),
        (
            "projector",
            none(),
            one(),
            [2, 1, 1],
            [1, 2, 1],
            "000>000 000>010 100>000 100>010",
        ),
        (
            "projector",
            none(),
            one(),
            [2, 1, 2],
            [2, 1, 2],
            "000>000 001>001 100>100 101>101",
        ),
        (
            "projector_xy",
            none(),
            one(),
            [2, 1, 1],
            [1, 2, 1],
            "000>000 100>010",
        ),
        (
            "transpose_xy",
            none(),
            one(),
            [2, 1, 1],
            [1, 2, 1],
            "000>000 100>010",
        ),
        (
            "projector_xz",
            none(),
            one(),
            [3, 1, 1],
            [1, 1, 3],
            "000>000 100>001 200>002",
        ),
        (
            "transpose_xz",
            none(),
            one(),
            [3, 1, 1],
            [1, 1, 3],
            "000>000 100>001 200>002",
        ),
        (
            "projector_yz",
            none(),
            one(),
            [1, 2, 1],
            [1, 1, 2],
            "000>000 010>001",
        ),
        (
            "transpose_yz",
            none(),
            one(),
            [1, 2, 1],
            [1, 1, 2],
            "000>000 010>001",
        ),
        (
            "project_from_end_x",
            none(),
            one(),
            [3, 2, 1],
            [3, 2, 1],
            "200>000 210>010",
        ),
        (
            "project_from_end_y",
            none(),
            one(),
            [1, 3, 1],
            [2, 3, 1],
            "020>000 020>100",
        ),
        (
            "project_from_end_z",
            none(),
            one(),
            [1, 1, 3],
            [1, 1, 3],
            "002>000",
        ),
        // Offsets 2 and 0: 2 + 2 is outside.
        (
            "v",
            vectors(json!([[1, 0, 0], [0, 0, 0]])),
            json!(2),
            [3, 1, 1],
            [4, 1, 1],
            "000>000 000>200 100>100 100>300 200>200",
        ),
        (
            "v",
            vectors(json!([[1, 1, 0]])),
            json!([1, -1, 1]),
            [2, 2, 1],
            [3, 2, 1],
            "010>100 110>200",
        ),
        // Half of ±1 towards zero is 0: one synapse, not two.
        (
            "v",
            vectors(json!([[1, 0, 0], [-1, 0, 0]])),
            json!(0.5),
            [2, 1, 1],
            [2, 1, 1],
            "000>000 100>100",
        ),
        ("v", vectors(json!([])), one(), [2, 1, 1], [2, 1, 1], ""),
        (
            "decrease_filter_diagonal",
            vectors(json!([[0, 1, 1]])),
            one(),
            [1, 2, 2],
            [1, 2, 2],
            "000>011",
        ),
        (
            "lateral_+x",
            none(),
            one(),
            [3, 1, 1],
            [3, 1, 1],
            "000>100 100>200",
        ),
        (
            "lateral_-x",
            none(),
            one(),
            [3, 1, 1],
            [3, 1, 1],
            "100>000 200>100",
        ),
        ("lateral_+y", none(), one(), [1, 2, 1], [1, 2, 1], "000>010"),
        ("lateral_-y", none(), one(), [1, 2, 1], [1, 2, 1], "010>000"),
        ("lateral_+z", none(), one(), [1, 1, 2], [1, 1, 2], "000>001"),
        ("lateral_-z", none(), one(), [1, 1, 2], [1, 1, 2], "001>000"),
        (
            "all_to_0-0-0",
            none(),
            one(),
            [2, 1, 2],
            [2, 2, 2],
            "000>000 001>000 100>000 101>000",
        ),
        (
            "0-0-0_to_all",
            none(),
            one(),
            [2, 1, 2],
            [2, 1, 2],
            "000>000 000>001 000>100 000>101",
        ),
        (
            "all_to_all",
            patterns(json!([[["?", "?", "?"], ["*", "*", "*"]]])),
            one(),
            [2, 1, 1],
            [1, 2, 1],
            "000>000 000>010 100>000 100>010",
        ),
        (
            "p",
            patterns(json!([[["*", "*", "*"], ["*", "?", "*"]]])),
            one(),
            [1, 2, 1],
            [2, 3, 1],
            "000>000 000>100 010>010 010>110",
        ),
        (
            "p",
            patterns(json!([[[0, "*", 0], [0, "!", 0]]])),
            one(),
            [1, 3, 1],
            [1, 3, 1],
            "000>010 000>020 010>000 010>020 020>000 020>010",
        ),
        // On the source side ? and ! match any coordinate.
        (
            "p",
            patterns(json!([[["?", "!", 1], [0, 0, 0]]])),
            one(),
            [2, 1, 2],
            [1, 1, 1],
            "001>000 101>000",
        ),
        // Coordinates outside a box match nothing; duplicate and overlapping patterns count once.
        (
            "p",
            patterns(json!([
                [[0, 0, 0], [5, 0, 0]],
                [[7, 0, 0], [0, 0, 0]],
                [[-1, 0, 0], [-1, 0, 0]]
            ])),
            one(),
            [2, 1, 1],
            [2, 1, 1],
            "",
        ),
        (
            "p",
            patterns(json!([
                [[0, 0, 0], [1, 0, 0]],
                [[0, 0, 0], [1, 0, 0]],
                [[0, 0, 0], ["*", 0, 0]]
            ])),
            one(),
            [2, 1, 1],
            [2, 1, 1],
            "000>000 000>100",
        ),
        (
            "p",
            along_x(json!("*"), json!("?+")),
            one(),
            [3, 1, 1],
            [3, 1, 1],
            "000>100 000>200 100>200",
        ),
        (
            "p",
            along_x(json!("*"), json!("?-")),
            one(),
            [3, 1, 1],
            [3, 1, 1],
            "100>000 200>000 200>100",
        ),
        (
            "p",
            along_x(json!("*"), json!("?+=")),
            one(),
            [2, 1, 1],
            [2, 1, 1],
            "000>000 000>100 100>100",
        ),
        (
            "p",
            along_x(json!("*"), json!("?-=")),
            one(),
            [2, 1, 1],
            [2, 1, 1],
            "000>000 100>000 100>100",
        ),
        (
            "p",
            along_x(json!("*"), json!("?+2")),
            one(),
            [2, 1, 1],
            [4, 1, 1],
            "000>200 100>300",
        ),
        (
            "p",
            along_x(json!("*"), json!("?-1:?+1")),
            one(),
            [3, 1, 1],
            [2, 1, 1],
            "000>000 000>100 100>000 100>100 200>100",
        ),
        (
            "p",
            along_x(json!("1..2"), json!("2..9")),
            one(),
            [4, 1, 1],
            [4, 1, 1],
            "100>200 100>300 200>200 200>300",
        ),
        (
            "p",
            along_x(json!("1"), json!(0.0)),
            one(),
            [3, 1, 1],
            [2, 1, 1],
            "100>000",
        ),
        (
            "expander",
            none(),
            one(),
            [2, 1, 1],
            [4, 1, 1],
            "000>000 100>200",
        ),
        (
            "expander",
            none(),
            one(),
            [4, 1, 1],
            [2, 1, 1],
            "000>000 100>000 200>100 300>100",
        ),
        // 4 is 100: three places. 2 and 3 have a 1 at place 1 from the left (010, 011), none has
        // one at place 0.
        (
            "expander_x",
            none(),
            one(),
            [2, 2, 1],
            [4, 2, 1],
            "100>200 100>300 110>200 110>300",
        ),
        // Two places: 1 is 01, 2 is 10, 3 is 11; of 4, 100, the first two count.
        (
            "reducer_x",
            none(),
            one(),
            [5, 1, 1],
            [2, 1, 1],
            "100>100 200>000 300>000 300>100 400>000",
        ),
        // Three places: 1 at place 1 in 010, 011, 110, 111.
        (
            "bitmask_encoder_x",
            none(),
            one(),
            [3, 1, 1],
            [8, 1, 1],
            "000>400 000>500 000>600 000>700 100>200 100>300 100>600 100>700 200>100 200>300 200>500 200>700",
        ),
        (
            "bitmask_encoder_y",
            none(),
            one(),
            [3, 1, 1],
            [2, 2, 1],
            "000>010 100>110 200>110",
        ),
        (
            "bitmask_encoder_z",
            none(),
            one(),
            [1, 1, 2],
            [1, 1, 4],
            "000>002 000>003 001>001 001>003",
        ),
        (
            "bitmask_decoder_x",
            none(),
            one(),
            [4, 1, 1],
            [3, 1, 1],
            "100>200 200>100 300>100 300>200",
        ),
        (
            "bitmask_decoder_y",
            none(),
            one(),
            [1, 3, 1],
            [1, 2, 1],
            "010>010 020>000",
        ),
        // 4 is 100; only two places are used: 00.
        (
            "bitmask_decoder_z",
            none(),
            one(),
            [1, 1, 5],
            [1, 1, 2],
            "001>001 002>000 003>000 003>001",
        ),
        (
            "lateral_pairs_x",
            none(),
            one(),
            [3, 1, 1],
            [3, 1, 1],
            "000>100 100>000",
        ),
        (
            "block_connection",
            none(),
            one(),
            [11, 1, 1],
            [2, 1, 1],
            "000>000 100>000 200>000 300>000 400>000 500>000 600>000 700>000 800>000 900>000 a00>100",
        ),
        (
            "last_to_first",
            none(),
            one(),
            [2, 2, 1],
            [2, 2, 2],
            "110>000",
        ),
        (
            "first_to_last",
            none(),
            one(),
            [2, 2, 1],
            [2, 2, 2],
            "000>111",
        ),
        (
            "sweeper",
            none(),
            one(),
            [2, 2, 1],
            [2, 2, 1],
            "000>100 010>110 100>010",
        ),
        (
            "sweeper",
            none(),
            one(),
            [3, 1, 1],
            [2, 1, 2],
            "000>100 100>001 200>001",
        ),
        // x − 1 and y − 1 of (2, 1) are 1 and 0: at −90° (1, 2), at 0° (2, 1), at 90° (1, 0).
        (
            "rotator_z",
            none(),
            one(),
            [3, 3, 1],
            [3, 3, 3],
            "000>200 000>001 000>022 010>100 010>011 010>122 020>000 020>021 020>222 \
          100>210 100>101 100>012 110>110 110>111 110>112 120>010 120>121 120>212 200>220 200>201 200>002 210>120 210>211 210>102 220>020 220>221 220>202",
        ),
        (
            "rotator_z",
            none(),
            one(),
            [2, 1, 1],
            [3, 1, 1],
            "000>000 100>200",
        ),
        (
            "tile",
            function(),
            one(),
            [4, 1, 1],
            [2, 1, 1],
            "000>000 100>100 200>000 300>100",
        ),
        (
            "tile",
            none(),
            one(),
            [2, 1, 1],
            [5, 1, 1],
            "000>000 000>200 000>400 100>100 100>300",
        ),
        (
            "t",
            tile(json!([[1, 1], [1, 0], [1, 0]])),
            one(),
            [6, 1, 1],
            [2, 1, 1],
            "000>000 100>100 400>000 500>100",
        ),
        // The third block is incomplete.
        (
            "t",
            tile(json!([[1, 0], [1, 0], [1, 0]])),
            one(),
            [5, 1, 1],
            [1, 1, 1],
            "000>000 100>000 200>000 300>000",
        ),
    ]
}

fn voxel(text: &str) -> [u32; 3] {
    let digits = text
        .chars()
        .map(|digit| digit.to_digit(16).expect("a digit"))
        .collect::<Vec<_>>();
    digits.try_into().expect("three digits")
}

#[test]
fn each_morphology_reaches_the_voxels_worked_out_by_hand() {
    for (name, definition, scalar, from, to, pairs) in cases() {
        let morphologies = if definition.is_null() {
            json!({})
        } else {
            json!({ name: definition })
        };
        let genome = parse(&document(
            pair(from, to, json!([name, scalar, 1, false])),
            morphologies,
        ));
        let what = format!("{name} {from:?} to {to:?}");
        assert_eq!(genome.warnings(), [""; 0], "{what}");
        let (source, target) = (&genome.areas()[0], &genome.areas()[1]);
        let mut found = synapses(&genome, 1)
            .iter()
            .map(|synapse| {
                (
                    source.voxel_of(synapse.source),
                    target.voxel_of(synapse.target),
                )
            })
            .collect::<Vec<_>>();
        let mut expected = pairs
            .split_whitespace()
            .map(|pair| pair.split_once('>').expect("a pair"))
            .map(|(s, t)| (voxel(s), voxel(t)))
            .collect::<Vec<_>>();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{what}");
        let estimate = genome.estimate();
        assert!(
            estimate.synapses >= found.len() as u64,
            "{what}: {estimate:?}"
        );
        assert!(
            !estimate.exact || estimate.synapses == found.len() as u64,
            "{what}: {estimate:?}"
        );
    }
}

/// Vectors, single patterns and projectors are counted exactly, without enumeration.
#[test]
fn plain_relations_are_counted_exactly() {
    let overlapping = patterns(json!([[[0, 0, 0], [1, 0, 0]], [[0, 0, 0], ["*", 0, 0]]]));
    let apart = patterns(json!([
        [[0, 0, 0], [1, 0, 0]],
        [[0, 0, 0], [0, 0, 0]],
        [[1, 0, 0], ["*", 0, 0]]
    ]));
    for (definition, synapses, exact) in [
        (overlapping, 3, false),
        (apart, 4, true),
        (vectors(json!([[0, 0, 0], [1, 0, 0]])), 3, true),
    ] {
        let genome = parse(&document(
            pair([2, 1, 1], [2, 1, 1], json!(["m", 1, 1, false])),
            json!({"m": definition}),
        ));
        assert_eq!(
            (genome.estimate().synapses, genome.estimate().exact),
            (synapses, exact)
        );
    }
}

/// An axis of 10¹⁵ pairs is counted without enumeration.
#[test]
fn counting_the_largest_boxes_takes_no_time() {
    let genome = parse(&document(
        pair(
            [1 << 10, 1 << 10, 1 << 10],
            [1 << 10, 1 << 10, 1 << 9],
            json!(["all_to_all", 1, 1, false]),
        ),
        json!({}),
    ));
    let estimate = genome.estimate();
    assert_eq!(
        (estimate.neurons, estimate.synapses, estimate.exact),
        (3 << 29, 1 << 59, true)
    );
    assert_eq!(estimate.synapse_bytes, 10 << 59);
}

#[test]
fn spans_hold_what_they_count_and_axes_count_what_they_pair() {
    let mut targets = vec![
        TargetRule::All,
        TargetRule::Others,
        TargetRule::Last,
        TargetRule::Clamped,
        TargetRule::Scaled,
        TargetRule::ScaledToOne,
        TargetRule::Folded,
        TargetRule::Repeated,
        TargetRule::Paired,
    ];
    targets.extend([
        TargetRule::ExpandedBits,
        TargetRule::ReducedBits,
        TargetRule::EncodedBits,
        TargetRule::DecodedBits,
        TargetRule::Divided(1),
        TargetRule::Divided(3),
    ]);
    targets.extend(
        [
            (-2, 3),
            (0, 0),
            (2, i64::MAX),
            (i64::MIN, -1),
            (3, 1),
            (-9, -7),
        ]
        .map(|(least, most)| TargetRule::Near(least, most)),
    );
    targets.extend(
        [(0, 0), (-3, 2), (2, 99), (5, 4)].map(|(least, most)| TargetRule::Between(least, most)),
    );
    targets.extend(
        [(1, 1, 0), (2, 1, 1), (3, 2, 1)].map(|(side, choose, skip)| TargetRule::Tiled {
            side,
            choose,
            skip,
        }),
    );
    let sources = [
        SourceRule::All,
        SourceRule::Last,
        SourceRule::Between(0, 0),
        SourceRule::Between(1, 4),
        SourceRule::Between(-5, 2),
        SourceRule::Between(7, 3),
    ];
    for to in targets {
        for (n, m) in (1..11)
            .flat_map(|n| (1..11).map(move |m| (n, m)))
            .chain([(40, 3), (3, 70)])
        {
            for sources in sources {
                let axis = Axis {
                    from: 0,
                    sources,
                    to,
                };
                let mut pairs = 0;
                for span in (0..n).filter_map(|s| axis.span(s, n, m)) {
                    let listed = span.iter().collect::<Vec<_>>();
                    let contained = (0..m + 5).filter(|t| span.contains(*t)).collect::<Vec<_>>();
                    assert_eq!(
                        (&listed, listed.len() as u64),
                        (&contained, span.len()),
                        "{axis:?} {n} {m}"
                    );
                    assert!(
                        listed.iter().all(|t| *t < m),
                        "{axis:?} {n} {m}: {listed:?}"
                    );
                    pairs += span.len();
                }
                assert_eq!(axis.pairs(n, m), pairs, "{axis:?} {n} {m}");
            }
        }
    }
}
