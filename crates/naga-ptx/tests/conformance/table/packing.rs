//! Packing numbers into words and back.

use half::f16;

use crate::case::{Case, Scope, to_f16};
use crate::lanes::{Bound, Bounds, Lanes, pairs};
use crate::pool;

/// WGSL's bound for the normalized formats.
const NORMALIZED: Bounds = Bounds::same(Bound::Ulp(3.0));

/// No number near a boundary between two codes.
const NORMAL: [f32; 16] = [
    0.0, 1.0, -1.0, 0.5001, -0.2501, 0.75, 2.0, -3.5, 0.1, -0.9, 0.33, -0.66, 0.004, -0.0001, 1e9,
    -1e9,
];

pub fn cases() -> Vec<Case> {
    let rows = NORMAL.iter().map(|&x| vec![x]).collect::<Vec<_>>();
    let signed = |x: f32, scale: f32| (0.5 + scale * x.clamp(-1.0, 1.0)).floor() as i32 as u32;
    let unsigned = |x: f32, scale: f32| (0.5 + scale * x.clamp(0.0, 1.0)).floor() as u32;
    let words = |group: &[Vec<f32>], bits: u32, f: &dyn Fn(f32) -> u32| {
        let mask = (1u32 << bits) - 1;
        vec![group.iter().rev().fold(0u32, |word, row| {
            word.checked_shl(bits).unwrap_or(0) | (f(row[0]) & mask)
        })]
    };
    let pack = |name: &str, width: usize| (format!("packing/{name}"), width, format!("{name}(x)"));
    let of =
        |(name, width, expression): &(String, usize, String), bits: u32, f: &dyn Fn(f32) -> u32| {
            Lanes::new(name, *width, expression)
                .reducing()
                .exact_groups(&rows, |group| words(group, bits, f))
        };
    let mut cases = vec![
        of(&pack("pack4x8snorm", 4), 8, &|x| signed(x, 127.0)),
        of(&pack("pack4x8unorm", 4), 8, &|x| unsigned(x, 255.0)),
        of(&pack("pack2x16snorm", 2), 16, &|x| signed(x, 32767.0)),
        of(&pack("pack2x16unorm", 2), 16, &|x| unsigned(x, 65535.0)),
    ];
    bytes(&mut cases);
    halves(&mut cases);
    unpack(&mut cases);
    cases
}

fn bytes(cases: &mut Vec<Case>) {
    let signed = pool::I32
        .iter()
        .chain(&[127, 128, -128, -129, 5, -5])
        .map(|&x| vec![x])
        .collect::<Vec<_>>();
    let unsigned = pool::U32
        .iter()
        .chain(&[254, 256, 5, 200])
        .map(|&x| vec![x])
        .collect::<Vec<_>>();
    fn word<T: Copy>(group: &[Vec<T>], byte: impl Fn(T) -> u8) -> Vec<u32> {
        vec![
            group
                .iter()
                .rev()
                .fold(0, |word, row| word << 8 | u32::from(byte(row[0]))),
        ]
    }
    let lanes = |name: &'static str| {
        Lanes::new(format!("packing/{}", &name[..name.len() - 3]), 4, name).reducing()
    };
    cases.push(lanes("pack4xI8(x)").exact_groups(&signed, |group| word(group, |x: i32| x as u8)));
    cases.push(lanes("pack4xU8(x)").exact_groups(&unsigned, |group| word(group, |x: u32| x as u8)));
    cases.push(lanes("pack4xI8Clamp(x)").exact_groups(&signed, |group| {
        word(group, |x: i32| x.clamp(-128, 127) as u8)
    }));
    cases.push(
        lanes("pack4xU8Clamp(x)")
            .exact_groups(&unsigned, |group| word(group, |x: u32| x.min(255) as u8)),
    );
    let rows = pairs(pool::U32, &[0u32, 1, 2, 3]);
    let byte = |x: u32, at: u32| x.to_le_bytes()[at as usize];
    cases.push(
        Lanes::new("packing/unpack4xI8", 1, "unpack4xI8(x)[y]")
            .exact2(&rows, |x, at| i32::from(byte(x, at) as i8)),
    );
    cases.push(
        Lanes::new("packing/unpack4xU8", 1, "unpack4xU8(x)[y]")
            .exact2(&rows, |x, at| u32::from(byte(x, at))),
    );
}

fn halves(cases: &mut Vec<Case>) {
    let word = |group: &[Vec<f32>]| {
        let half = |x: f32| u32::from(to_f16(f64::from(x)).to_bits());
        vec![half(group[0][0]) | half(group[1][0]) << 16]
    };
    let exact = [
        0.0f32,
        1.0,
        -1.0,
        0.5,
        65504.0,
        -65504.0,
        2048.0,
        0.33325195,
        6.1035156e-5,
        -7.25,
    ]
    .map(|x| vec![x]);
    let rounded = [
        0.1f32,
        1.0 / 3.0,
        2049.0,
        2051.0,
        65519.0,
        65520.0,
        1e9,
        5.9604645e-8,
        2.9802322e-8,
        3e-8,
        f32::INFINITY,
    ]
    .map(|x| vec![x]);
    cases.push(
        Lanes::new("packing/pack2x16float", 2, "pack2x16float(x)")
            .reducing()
            .exact_groups(&exact, word),
    );
    let lanes = Lanes::new("packing/pack2x16float/ieee", 2, "pack2x16float(x)").reducing();
    cases.push(lanes.exact_groups(&rounded, word).scope(Scope::Ptx));
    let words = [
        0x3c00_0000u32,
        0xbc00_3800,
        0x7bff_fbff,
        0x0400_8400,
        0x3555_4248,
    ];
    let half = |x: u32, at: u32| f16::from_bits((x >> (16 * at)) as u16).to_f32();
    cases.push(
        Lanes::new("packing/unpack2x16float", 1, "unpack2x16float(x)[y]")
            .exact2(&pairs(&words, &[0u32, 1]), half),
    );
    let special = [0x0001_83ffu32, 0x7c00_fc00, 0x7e00_8000];
    let lanes = Lanes::new("packing/unpack2x16float/ieee", 1, "unpack2x16float(x)[y]");
    cases.push(
        lanes
            .exact2(&pairs(&special, &[0u32, 1]), half)
            .scope(Scope::Ptx),
    );
}

fn unpack(cases: &mut Vec<Case>) {
    let words = [
        0u32,
        u32::MAX,
        0x8000_8000,
        0x7fff_8001,
        0x80ff_7f01,
        0x1234_5678,
        0x8182_fe7e,
    ];
    let mut near = |name: &str, lanes: u32, f: fn(u32, u32) -> f64| {
        // One case per component: the operand is only the word.
        for at in 0..lanes {
            let expression = format!("{name}(x)[{at}]");
            let lanes = Lanes::new(format!("packing/{name}/{at}"), 1, &expression);
            cases.push(lanes.near1(&words, NORMALIZED, |x: u32| f(x, at) as f32));
        }
    };
    near("unpack4x8snorm", 4, |x, at| {
        (f64::from(x.to_le_bytes()[at as usize] as i8) / 127.0).max(-1.0)
    });
    near("unpack4x8unorm", 4, |x, at| {
        f64::from(x.to_le_bytes()[at as usize]) / 255.0
    });
    near("unpack2x16snorm", 2, |x, at| {
        (f64::from((x >> (16 * at)) as i16) / 32767.0).max(-1.0)
    });
    near("unpack2x16unorm", 2, |x, at| {
        f64::from((x >> (16 * at)) as u16) / 65535.0
    });
}
