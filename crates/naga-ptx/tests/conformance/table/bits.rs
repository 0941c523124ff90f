//! Bitwise operators, shifts and the integer built-in functions.

use crate::case::{Case, Scope};
use crate::lanes::{Lanes, pairs};
use crate::pool;

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    signed_32(&mut cases);
    unsigned_32(&mut cases);
    signed_64(&mut cases);
    unsigned_64(&mut cases);
    packed_dots(&mut cases);
    cases.into_iter().map(scoped).collect()
}

/// Vulkan has the bit instructions only for 32 bits, and naga emits them for 64 bits anyway.
fn scoped(case: Case) -> Case {
    let functions = ["count", "reverse", "first", "extract", "insert"];
    let of_bits = functions
        .iter()
        .any(|function| case.name.starts_with(&format!("bits/{function}")));
    if of_bits && case.name.contains("64") {
        case.scope(Scope::Ptx)
    } else {
        case
    }
}

/// The cases of one integer type; its unsigned counterpart has no sign.
macro_rules! integer {
    ($family:ident, $type:ident, $unsigned:ident, $pool:expr) => {
        fn $family(cases: &mut Vec<Case>) {
            const BITS: u32 = $type::BITS;
            let (name, pool): (_, &[$type]) = (stringify!($type), $pool);
            let rows = pairs(pool, pool);
            let mut push2 =
                |what: &str, width: usize, expression: &str, f: fn($type, $type) -> $type| {
                    let shape = shape(name, width);
                    cases.push(
                        Lanes::new(format!("bits/{what}/{shape}"), width, expression)
                            .exact2(&rows, f),
                    );
                };
            push2("and", 1, "x & y", |x, y| x & y);
            push2("and", 3, "x & y", |x, y| x & y);
            push2("or", 1, "x | y", |x, y| x | y);
            push2("or", 2, "x | y", |x, y| x | y);
            push2("xor", 1, "x ^ y", |x, y| x ^ y);
            push2("xor", 4, "x ^ y", |x, y| x ^ y);
            push2("min", 1, "min(x, y)", |x, y| x.min(y));
            push2("min", 3, "min(x, y)", |x, y| x.min(y));
            push2("max", 1, "max(x, y)", |x, y| x.max(y));
            push2("max", 2, "max(x, y)", |x, y| x.max(y));
            let mut push1 = |what: &str, expression: &str, f: fn($type) -> $type| {
                for width in [1, 2 + what.len() % 3] {
                    let shape = shape(name, width);
                    cases.push(
                        Lanes::new(format!("bits/{what}/{shape}"), width, expression)
                            .exact1(&pool, f),
                    );
                }
            };
            push1("not", "~x", |x| !x);
            push1("countOneBits", "countOneBits(x)", |x| {
                x.count_ones() as $type
            });
            push1("countLeadingZeros", "countLeadingZeros(x)", |x| {
                x.leading_zeros() as $type
            });
            push1("countTrailingZeros", "countTrailingZeros(x)", |x| {
                x.trailing_zeros() as $type
            });
            push1("reverseBits", "reverseBits(x)", |x| x.reverse_bits());
            push1("firstTrailingBit", "firstTrailingBit(x)", |x| {
                if x == 0 {
                    !0
                } else {
                    x.trailing_zeros() as $type
                }
            });
            push1("firstLeadingBit", "firstLeadingBit(x)", |x| {
                // Of a negative number: the highest bit that is 0.
                #[allow(unused_comparisons, reason = "one body for signed and unsigned types")]
                let x = (if x < 0 { !x } else { x }) as $unsigned;
                if x == 0 {
                    !0
                } else {
                    (BITS - 1 - x.leading_zeros()) as $type
                }
            });
            let clamp = rows
                .iter()
                .zip(pool.iter().cycle())
                .map(|(&(x, y), &z)| (x, y.min(z), y.max(z)))
                .collect::<Vec<_>>();
            for width in [1, 3] {
                let shape = shape(name, width);
                let lanes = Lanes::new(format!("bits/clamp/{shape}"), width, "clamp(x, y, z)");
                cases.push(lanes.exact3(&clamp, |x: $type, low, high| x.min(high).max(low)));
            }
            let amounts = pairs(pool, &[0, 1, 2, 7, 15, 16, 31, BITS - 1]);
            // A shift by the width or more wraps around.
            let beyond = pairs(pool, &[BITS, BITS + 1, 2 * BITS - 1, 255, 0xffff_ffff]);
            for (what, rows) in [("", &amounts), ("/beyond the width", &beyond)] {
                for width in [1, 2] {
                    let shape = shape(name, width);
                    let left =
                        Lanes::new(format!("bits/shift left/{shape}{what}"), width, "x << y");
                    cases.push(left.exact2(rows, |x: $type, y: u32| x.wrapping_shl(y)));
                    let right =
                        Lanes::new(format!("bits/shift right/{shape}{what}"), width, "x >> y");
                    cases.push(right.exact2(rows, |x: $type, y: u32| x.wrapping_shr(y)));
                }
            }
            let fields = [0, 1, 5, 8, 31, BITS - 1, BITS, 100];
            let ranges = pairs(&fields, &fields);
            let all = pool
                .iter()
                .step_by(3)
                .flat_map(|&x| ranges.iter().map(move |&(o, c)| (x, o, c)))
                .collect::<Vec<_>>();
            let extract = |x: $type, offset: u32, count: u32| {
                let offset = offset.min(BITS);
                let count = count.min(BITS - offset);
                if count == 0 {
                    0
                } else {
                    (x << (BITS - offset - count)) >> (BITS - count)
                }
            };
            cases.push(
                Lanes::new(
                    format!("bits/extractBits/{name}"),
                    1,
                    "extractBits(x, y, z)",
                )
                .exact3(&all, extract),
            );
            let insert = |x: $type, y: u32, z: u32| {
                let (offset, bits) = (y.min(BITS), !(x >> 1));
                let count = z.min(BITS - offset);
                let mask = if count == 0 {
                    0
                } else {
                    ($unsigned::MAX >> (BITS - count)) << offset
                };
                ((x as $unsigned & !mask)
                    | ((bits as $unsigned).checked_shl(offset).unwrap_or(0) & mask))
                    as $type
            };
            cases.push(
                Lanes::new(
                    format!("bits/insertBits/{name}"),
                    1,
                    "insertBits(x, ~(x >> 1u), y, z)",
                )
                .exact3(&all, insert),
            );
            let lanes = Lanes::new(
                format!("bits/extractBits/vec3<{name}>"),
                3,
                "extractBits(x, 3u, 11u)",
            );
            cases.push(lanes.exact1(&pool, move |x: $type| extract(x, 3, 11)));
            let lanes = Lanes::new(
                format!("bits/insertBits/vec2<{name}>"),
                2,
                "insertBits(x, ~(x >> vec2(1u)), 5u, 20u)",
            );
            cases.push(lanes.exact1(&pool, move |x: $type| insert(x, 5, 20)));
        }
    };
}
integer!(signed_32, i32, u32, pool::I32);
integer!(unsigned_32, u32, u32, pool::U32);
integer!(signed_64, i64, u64, pool::I64);
integer!(unsigned_64, u64, u64, pool::U64);

fn shape(name: &str, width: usize) -> String {
    if width == 1 {
        name.to_owned()
    } else {
        format!("vec{width}<{name}>")
    }
}

fn packed_dots(cases: &mut Vec<Case>) {
    let rows = pairs(pool::U32, pool::U32);
    cases.push(
        Lanes::new("bits/dot4U8Packed/u32", 1, "dot4U8Packed(x, y)").exact2(&rows, |x, y| {
            x.to_le_bytes()
                .iter()
                .zip(y.to_le_bytes())
                .map(|(&x, y)| u32::from(x) * u32::from(y))
                .sum::<u32>()
        }),
    );
    cases.push(
        Lanes::new("bits/dot4I8Packed/u32", 1, "dot4I8Packed(x, y)").exact2(
            &rows,
            |x: u32, y: u32| {
                x.to_le_bytes()
                    .iter()
                    .zip(y.to_le_bytes())
                    .map(|(&x, y)| i32::from(x as i8) * i32::from(y as i8))
                    .sum::<i32>()
            },
        ),
    );
    cases.push(Lanes::new("bits/abs/i32", 1, "abs(x)").exact1(pool::I32, i32::wrapping_abs));
    cases.push(Lanes::new("bits/abs/vec3<i32>", 3, "abs(x)").exact1(pool::I32, i32::wrapping_abs));
    cases.push(Lanes::new("bits/abs/i64", 1, "abs(x)").exact1(pool::I64, i64::wrapping_abs));
    cases.push(Lanes::new("bits/abs/u32", 1, "abs(x)").exact1(pool::U32, |x: u32| x));
    cases.push(Lanes::new("bits/sign/i32", 1, "sign(x)").exact1(pool::I32, i32::signum));
    cases.push(Lanes::new("bits/sign/vec2<i32>", 2, "sign(x)").exact1(pool::I32, i32::signum));
    cases.push(Lanes::new("bits/sign/i64", 1, "sign(x)").exact1(pool::I64, i64::signum));
    let dot = Lanes::new("bits/dot/vec3<i32>", 3, "dot(x, y)").reducing();
    let signed = pairs(pool::I32, pool::I32)
        .into_iter()
        .map(|(x, y)| vec![x, y])
        .collect::<Vec<_>>();
    cases.push(dot.exact_groups(&signed, |group| {
        vec![group.iter().fold(0i32, |sum, row| {
            sum.wrapping_add(row[0].wrapping_mul(row[1]))
        })]
    }));
    let dot = Lanes::new("bits/dot/vec4<u32>", 4, "dot(x, y)").reducing();
    let unsigned = rows
        .into_iter()
        .map(|(x, y)| vec![x, y])
        .collect::<Vec<_>>();
    cases.push(dot.exact_groups(&unsigned, |group| {
        vec![group.iter().fold(0u32, |sum, row| {
            sum.wrapping_add(row[0].wrapping_mul(row[1]))
        })]
    }));
}
