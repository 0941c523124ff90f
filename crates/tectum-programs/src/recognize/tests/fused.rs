//! Several maps merged into one.

use super::super::{Fused, Map, Stage, fuse};
use super::{checked, f32s, reference, values, zeros};
use crate::{LaunchConfig, Shape};

fn map(text: &str, n: u64, sizes: &[u64]) -> Map {
    let found = checked(text)
        .recognize(&super::Setting::new(
            &LaunchConfig::linear(n as u32, 64),
            sizes,
        ))
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let Shape::Map(map) = found.shape() else {
        panic!("{:?}", found.refusals())
    };
    map.clone()
}

const SCALE: &str = "program scale\nbuffer x: f32 read\nbuffer s: f32 read\nbuffer t: f32 write\nldg.f32 r0, [x]\nldg.f32 r1, [s + 4]\nmul.f32 r0, r0, r1\nstg.f32 [t], r0";
const RELU: &str = "program relu\nbuffer t: f32 read\nbuffer y: f32 write\nldg.f32 r0, [t]\nrelu.f32 r0, r0\nstg.f32 [y], r0";
const ADD: &str = "program add\nbuffer a: f32 read_write\nbuffer b: f32 read\nldg.f32 r0, [a]\nldg.f32 r1, [b]\nadd.f32 r0, r0, r1\nstg.f32 [a], r0";

fn text(fused: &Fused) -> String {
    fused.map.program().program().to_string()
}

/// Runs the stages in sequence, and the fused one; checks that all kept memories agree.
fn agree(stages: &[Stage<'_>], fused: &Fused, memories: &[Vec<u8>], dropped: &[usize]) {
    let run = |map: &Map, places: &[usize], memories: &mut [Vec<u8>]| {
        let before: Vec<Vec<u8>> = places
            .iter()
            .map(|place| memories[*place].clone())
            .collect();
        let after = reference(map.program(), map.launch(), &before);
        places
            .iter()
            .zip(after)
            .zip(map.program().program().buffers())
            .filter(|(_, buffer)| buffer.access.writes())
            .for_each(|((place, bytes), _)| memories[*place] = bytes);
    };
    let (mut apart, mut together) = (memories.to_vec(), memories.to_vec());
    stages
        .iter()
        .for_each(|stage| run(stage.map, stage.memories, &mut apart));
    run(&fused.map, &fused.memories, &mut together);
    for place in (0..memories.len()).filter(|place| !dropped.contains(place)) {
        assert_eq!(apart[place], together[place], "memory {place}");
    }
}

#[test]
fn a_chain_of_maps_becomes_one() {
    for n in super::SIZES {
        let [scale, relu, add] = [
            map(SCALE, n, &[4 * n, 8, 4 * n]),
            map(RELU, n, &[4 * n, 4 * n]),
            map(ADD, n, &[4 * n, 4 * n]),
        ];
        let stages = [
            Stage {
                map: &scale,
                memories: &[0, 1, 2],
            },
            Stage {
                map: &relu,
                memories: &[2, 3],
            },
            Stage {
                map: &add,
                memories: &[3, 0],
            },
        ];
        let memories = [values(n, 0.5), f32s([1.0, -2.0]), zeros(n), zeros(n)];
        let kept = fuse(&stages, &[]).expect("they fuse");
        agree(&stages, &kept, &memories, &[]);
        let fused = fuse(&stages, &[2]).expect("they fuse");
        agree(&stages, &fused, &memories, &[2]);
        let expected = "program scale_relu_add\nbuffer m0: f32 read\nbuffer m1: f32 read\nbuffer m3: f32 write\n    ldg.f32 r0, [m0]\n    ldg.f32 r1, [m1 + 4]\n    mul.f32 r1, r0, r1\n    relu.f32 r1, r1\n    \
                        add.f32 r0, r1, r0\n    stg.f32 [m3], r0\n";
        assert_eq!(
            (text(&fused).as_str(), fused.memories.as_slice()),
            (expected, &[0usize, 1, 3][..]),
            "n = {n}"
        );
    }
}

#[test]
fn independent_maps_become_one_launch() {
    let [relu, add] = [map(RELU, 9, &[36, 36]), map(ADD, 9, &[36, 36])];
    let stages = [
        Stage {
            map: &relu,
            memories: &[0, 1],
        },
        Stage {
            map: &add,
            memories: &[2, 3],
        },
        Stage {
            map: &relu,
            memories: &[3, 4],
        },
    ];
    let fused = fuse(&stages, &[]).expect("they fuse");
    assert_eq!(fused.memories, [0, 1, 2, 3, 4]);
    agree(
        &stages,
        &fused,
        &[
            values(9, 1.0),
            zeros(9),
            values(9, 0.5),
            values(9, -1.0),
            zeros(9),
        ],
        &[],
    );
}

#[test]
fn maps_that_would_see_each_other_stay_apart() {
    let (relu, scale, other) = (
        map(RELU, 2, &[8, 8]),
        map(SCALE, 2, &[8, 8, 8]),
        map(RELU, 3, &[12, 12]),
    );
    let wide = map(
        "buffer y: i32 write\nmov_imm.i32 r0, 1\nstg.i32 [y], r0",
        2,
        &[8],
    );
    let cases: [(&[Stage<'_>], &[usize], &str); 7] = [
        (
            &[
                Stage {
                    map: &relu,
                    memories: &[0, 1],
                },
                Stage {
                    map: &other,
                    memories: &[2, 3],
                },
            ],
            &[],
            "a map has 2 elements and another 3",
        ),
        (
            &[
                Stage {
                    map: &relu,
                    memories: &[0, 1],
                },
                Stage {
                    map: &scale,
                    memories: &[0, 1, 2],
                },
            ],
            &[],
            "map 1 loads memory 1 at 4, which map 0 stores to",
        ),
        (
            &[
                Stage {
                    map: &scale,
                    memories: &[0, 1, 2],
                },
                Stage {
                    map: &relu,
                    memories: &[2, 1],
                },
            ],
            &[],
            "map 0 loads memory 1 at 4, which map 1 stores to",
        ),
        (
            &[Stage {
                map: &scale,
                memories: &[0, 1, 1],
            }],
            &[],
            "two buffers of map 0 are the same memory",
        ),
        (
            &[
                Stage {
                    map: &wide,
                    memories: &[0],
                },
                Stage {
                    map: &relu,
                    memories: &[0, 1],
                },
            ],
            &[],
            "memory 0 is stored as i32 and loaded as f32",
        ),
        (
            &[Stage {
                map: &relu,
                memories: &[0, 1],
            }],
            &[1],
            "all stores of the maps are dropped",
        ),
        (&[], &[], "there are no maps"),
    ];
    for (stages, dropped, reason) in cases {
        let refusal = fuse(stages, dropped).expect_err(reason);
        assert!(refusal.to_string().contains(reason), "{refusal}");
    }
    let many: Vec<Vec<usize>> = (0..5).map(|index| vec![2 * index, 2 * index + 1]).collect();
    let stages: Vec<Stage<'_>> = many
        .iter()
        .map(|memories| Stage {
            map: &relu,
            memories,
        })
        .collect();
    assert!(
        fuse(&stages, &[])
            .expect_err("too many")
            .reason
            .contains("10 buffers are more than the 8")
    );
}
