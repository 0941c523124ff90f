//! Value conversions between all scalar types, and bit casts.

use half::f16;

use crate::case::{Case, Scope, to_f16};
use crate::lanes::{Bound, Bounds, Float, Lanes, Scalar};
use crate::pool;

/// WGSL: a number between two representable ones becomes either; PTX rounds to the nearest.
const EITHER_NEIGHBOUR: Bounds = Bounds::rounded_in_ptx(Bound::Ulp(1.0));

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    integers(&mut cases);
    truths(&mut cases);
    integers_to_floats(&mut cases);
    floats_to_integers::<f16>(&mut cases, &pool::f16());
    floats_to_integers::<f32>(&mut cases, &f32_edges());
    floats_to_integers::<f64>(&mut cases, &f64_edges());
    floats(&mut cases);
    bit_casts(&mut cases);
    cases
}

macro_rules! wrapping {
    ($cases:ident: $($from:ident $pool:expr => $($to:ident)*;)*) => { $($(
        let expression = concat!(stringify!($to), "(x)");
        let name = concat!("conversion/", stringify!($from), " to ", stringify!($to));
        $cases.push(Lanes::new(name, 1, expression).exact1($pool, |x: $from| x as $to));
    )*)* };
}

fn integers(cases: &mut Vec<Case>) {
    wrapping! { cases:
        i32 pool::I32 => i32 u32 i64 u64;
        u32 pool::U32 => i32 u32 i64 u64;
        i64 pool::I64 => i32 u32 i64 u64;
        u64 pool::U64 => i32 u32 i64 u64;
    }
    cases.push(
        Lanes::new("conversion/vec3<i32> to vec3<u32>", 3, "vec3<u32>(x)")
            .exact1(pool::I32, |x: i32| x as u32),
    );
    cases.push(
        Lanes::new("conversion/vec2<u32> to vec2<i64>", 2, "vec2<i64>(x)")
            .exact1(pool::U32, |x: u32| i64::from(x)),
    );
}

fn truths(cases: &mut Vec<Case>) {
    let both = [false, true];
    cases.push(Lanes::new("conversion/bool to i32", 1, "i32(x)").exact1(&both, i32::from));
    cases.push(Lanes::new("conversion/bool to u32", 1, "u32(x)").exact1(&both, u32::from));
    cases.push(Lanes::new("conversion/bool to i64", 1, "i64(x)").exact1(&both, i64::from));
    cases.push(Lanes::new("conversion/bool to u64", 1, "u64(x)").exact1(&both, u64::from));
    cases.push(
        Lanes::new("conversion/bool to f16", 1, "f16(x)")
            .exact1(&both, |x| f16::from_f32(f32::from(u8::from(x)))),
    );
    cases.push(
        Lanes::new("conversion/bool to f32", 1, "f32(x)").exact1(&both, |x| f32::from(u8::from(x))),
    );
    cases.push(
        Lanes::new("conversion/bool to f64", 1, "f64(x)").exact1(&both, |x| f64::from(u8::from(x))),
    );
    cases.push(Lanes::new("conversion/bool to bool", 1, "bool(x)").exact1(&both, |x| x));
    cases.push(
        Lanes::new("conversion/vec4<bool> to vec4<f32>", 4, "vec4<f32>(x)")
            .exact1(&both, |x| f32::from(u8::from(x))),
    );
    cases.push(Lanes::new("conversion/i32 to bool", 1, "bool(x)").exact1(pool::I32, |x| x != 0));
    cases.push(Lanes::new("conversion/u32 to bool", 1, "bool(x)").exact1(pool::U32, |x| x != 0));
    cases.push(Lanes::new("conversion/i64 to bool", 1, "bool(x)").exact1(pool::I64, |x| x != 0));
    cases.push(Lanes::new("conversion/u64 to bool", 1, "bool(x)").exact1(pool::U64, |x| x != 0));
    let ordinary = pool::F32
        .iter()
        .copied()
        .filter(|x| x.ordinary())
        .collect::<Vec<_>>();
    cases.push(Lanes::new("conversion/f32 to bool", 1, "bool(x)").exact1(&ordinary, |x| x != 0.0));
    cases.push(
        Lanes::new("conversion/vec2<f32> to vec2<bool>", 2, "vec2<bool>(x)")
            .exact1(&ordinary, |x| x != 0.0),
    );
    cases.push(
        Lanes::new("conversion/f32 to bool/ieee", 1, "bool(x)")
            .exact1(pool::F32, |x| x != 0.0)
            .scope(Scope::Ptx),
    );
    let ordinary = pool::F64
        .iter()
        .copied()
        .filter(|x| x.ordinary())
        .collect::<Vec<_>>();
    cases.push(Lanes::new("conversion/f64 to bool", 1, "bool(x)").exact1(&ordinary, |x| x != 0.0));
    let ordinary = pool::f16()
        .into_iter()
        .filter(|x| x.ordinary())
        .collect::<Vec<_>>();
    cases.push(
        Lanes::new("conversion/f16 to bool", 1, "bool(x)").exact1(&ordinary, |x| x != f16::ZERO),
    );
}

fn integers_to_floats(cases: &mut Vec<Case>) {
    let beyond_24_bits = [16_777_217, 16_777_219, 33_554_433, 0x7fff_ffbf, 0x7fff_ffc0];
    let i32s = [pool::I32, &beyond_24_bits].concat();
    let u32s = [
        pool::U32,
        &beyond_24_bits.map(|x| x as u32),
        &[0xffff_ff7f, 0xffff_ff80],
    ]
    .concat();
    let beyond_53_bits = [
        9_007_199_254_740_993,
        9_007_199_254_740_995,
        0x7fff_ffff_ffff_fdff,
        0x4000_0040_0000_0001,
    ];
    let i64s = [pool::I64, &beyond_53_bits].concat();
    let u64s = [
        pool::U64,
        &beyond_53_bits.map(|x| x as u64),
        &[0xffff_ff7f_ffff_ffff, 0xffff_ffff_ffff_fbff],
    ]
    .concat();
    widen(cases, &i32s, |x| x as f32, f64::from, f64::from);
    widen(cases, &u32s, |x| x as f32, f64::from, f64::from);
    widen(cases, &i64s, |x| x as f32, |x| x as f64, |x| x as f64);
    widen(cases, &u64s, |x| x as f32, |x| x as f64, |x| x as f64);
    cases.push(
        Lanes::new("conversion/vec3<i32> to vec3<f32>", 3, "vec3<f32>(x)").near1(
            &i32s,
            EITHER_NEIGHBOUR,
            |x: i32| x as f32,
        ),
    );
}

fn widen<A: Scalar>(
    cases: &mut Vec<Case>,
    pool: &[A],
    single: fn(A) -> f32,
    double: fn(A) -> f64,
    value: fn(A) -> f64,
) {
    let name = A::TYPE.name;
    cases.push(
        Lanes::new(format!("conversion/{name} to f32"), 1, "f32(x)").near1(
            pool,
            EITHER_NEIGHBOUR,
            single,
        ),
    );
    cases.push(
        Lanes::new(format!("conversion/{name} to f64"), 1, "f64(x)").near1(
            pool,
            EITHER_NEIGHBOUR,
            double,
        ),
    );
    let within = pool
        .iter()
        .copied()
        .filter(|&x| value(x).abs() <= 65504.0)
        .collect::<Vec<_>>();
    let half = move |x: A| to_f16(value(x));
    cases.push(
        Lanes::new(format!("conversion/{name} to f16"), 1, "f16(x)").near1(
            &within,
            EITHER_NEIGHBOUR,
            half,
        ),
    );
    let lanes = Lanes::new(format!("conversion/{name} to f16/ieee"), 1, "f16(x)");
    cases.push(lanes.exact1(pool, half).scope(Scope::Ptx));
}

fn f32_edges() -> Vec<f32> {
    let more = [
        0.99999994,
        -0.99999994,
        2147483520.0,
        2147483648.0,
        -2147483648.0,
        -2147483904.0,
        4294967040.0,
        4294967296.0,
        1e18,
        -1e18,
        9.223371e18,
        9.223372e18,
        -9.223372e18,
        1.8446743e19,
        1.8446744e19,
        1e20,
        -1e20,
    ];
    [pool::F32, &more].concat()
}

fn f64_edges() -> Vec<f64> {
    let more = [
        2147483646.9,
        2147483647.0,
        2147483647.5,
        2147483648.0,
        -2147483648.0,
        -2147483648.9,
        -2147483649.0,
        4294967294.9,
        4294967295.0,
        4294967295.9,
        4294967296.0,
        9223372036854774784.0,
        9223372036854775808.0,
        -9223372036854775808.0,
        -1e19,
        18446744073709549568.0,
        18446744073709551616.0,
        1e30,
        -0.9999999,
    ];
    [pool::F64, &more].concat()
}

/// Truncates, and saturates at the ends that the source type can represent; NaN is left open.
fn floats_to_integers<T: Float>(cases: &mut Vec<Case>, pool: &[T]) {
    let (all, ordinary) = (
        without_nan(pool),
        pool.iter()
            .copied()
            .filter(|x| x.ordinary())
            .collect::<Vec<_>>(),
    );
    let largest = |limit: f64| match T::TYPE.name {
        "f16" => limit.min(65504.0),
        "f32" => f64::from(f32::from_bits(
            (limit as f32).to_bits() - u32::from(f64::from(limit as f32) >= limit),
        )),
        _ => f64::from_bits(limit.to_bits() - 1),
    };
    // The largest double below 2^31 truncates to the integer's own end.
    let (i32_end, u32_end) = (largest(2147483648.0), largest(4294967296.0));
    let (i64_end, u64_end) = (
        largest(9223372036854775808.0),
        largest(18446744073709551616.0),
    );
    let within = |least: f64, most: f64| {
        move |x: T| {
            x.wide()
                .max(if T::TYPE.name == "f16" {
                    least.max(-65504.0)
                } else {
                    least
                })
                .min(most)
        }
    };
    convert(cases, "i32", &ordinary, &all, move |x| {
        within(-2147483648.0, i32_end)(x) as i32
    });
    convert(cases, "u32", &ordinary, &all, move |x| {
        within(0.0, u32_end)(x) as u32
    });
    convert(cases, "i64", &ordinary, &all, move |x| {
        within(-9223372036854775808.0, i64_end)(x) as i64
    });
    convert(cases, "u64", &ordinary, &all, move |x| {
        within(0.0, u64_end)(x) as u64
    });
}

fn without_nan<T: Float>(pool: &[T]) -> Vec<T> {
    pool.iter()
        .copied()
        .filter(|x| !x.wide().is_nan())
        .collect()
}

fn convert<T: Float, O: Scalar>(
    cases: &mut Vec<Case>,
    to: &str,
    ordinary: &[T],
    all: &[T],
    f: impl Fn(T) -> O,
) {
    let (from, expression) = (T::TYPE.name, format!("{to}(x)"));
    cases.push(
        Lanes::new(format!("conversion/{from} to {to}"), 1, &expression).exact1(ordinary, &f),
    );
    cases.push(
        Lanes::new(format!("conversion/{from} to {to}/ieee"), 1, &expression)
            .exact1(all, &f)
            .scope(Scope::Ptx),
    );
    if to == "i32" {
        let lanes = Lanes::new(
            format!("conversion/vec3<{from}> to vec3<{to}>"),
            3,
            "vec3<i32>(x)",
        );
        cases.push(lanes.exact1(ordinary, &f));
    }
}

fn floats(cases: &mut Vec<Case>) {
    let to_half = [
        2049.0,
        2051.0,
        0.1,
        1.0 + 1.0 / 2048.0,
        1.0 + 3.0 / 2048.0,
        65519.0,
        -65503.0,
        1e-4,
    ];
    let f32s = [pool::F32, &to_half].concat();
    // Halfway in half precision but for a part that single precision drops: a step over f32 rounds
    // twice.
    let to_single = [
        f64::from(16777217),
        1.0 + 2f64.powi(-24) + 2f64.powi(-50),
        1.0 + 2f64.powi(-11) + 2f64.powi(-30),
    ];
    let f64s = [pool::F64, &to_half.map(f64::from), &to_single].concat();
    between(cases, &f32s, |x: f32| to_f16(f64::from(x)));
    between(cases, &f64s, |x: f64| to_f16(x));
    between(cases, &f64s, |x: f64| x as f32);
    between(cases, &pool::f16(), |x: f16| x.to_f32());
    between(cases, &pool::f16(), |x: f16| x.to_f64());
    between(cases, &f32s, |x: f32| f64::from(x));
    let lanes = Lanes::new("conversion/vec4<f32> to vec4<f16>", 4, "vec4<f16>(x)");
    cases.push(lanes.near1(&to_half, EITHER_NEIGHBOUR, |x: f32| f16::from_f32(x)));
}

fn between<A: Float, T: Float>(cases: &mut Vec<Case>, pool: &[A], f: fn(A) -> T) {
    let (from, to) = (A::TYPE.name, T::TYPE.name);
    let expression = format!("{to}(x)");
    let ordinary = pool
        .iter()
        .copied()
        .filter(|&x| x.ordinary() && f(x).ordinary())
        .collect::<Vec<_>>();
    cases.push(
        Lanes::new(format!("conversion/{from} to {to}"), 1, &expression).near1(
            &ordinary,
            EITHER_NEIGHBOUR,
            f,
        ),
    );
    cases.push(
        Lanes::new(format!("conversion/{from} to {to}/ieee"), 1, &expression)
            .exact1(pool, f)
            .scope(Scope::Ptx),
    );
}

fn bit_casts(cases: &mut Vec<Case>) {
    let f32s = pool::F32
        .iter()
        .copied()
        .filter(|x| x.ordinary())
        .collect::<Vec<_>>();
    let f64s = pool::F64
        .iter()
        .copied()
        .filter(|x| x.ordinary())
        .collect::<Vec<_>>();
    cases.push(
        Lanes::new("conversion/bitcast f32 to u32", 1, "bitcast<u32>(x)")
            .exact1(&f32s, f32::to_bits),
    );
    cases.push(
        Lanes::new("conversion/bitcast f32 to i32", 1, "bitcast<i32>(x)")
            .exact1(&f32s, |x| x.to_bits() as i32),
    );
    cases.push(
        Lanes::new("conversion/bitcast u32 to i32", 1, "bitcast<i32>(x)")
            .exact1(pool::U32, |x| x as i32),
    );
    cases.push(
        Lanes::new("conversion/bitcast i32 to u32", 1, "bitcast<u32>(x)")
            .exact1(pool::I32, |x| x as u32),
    );
    let bits = f32s.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    cases.push(
        Lanes::new("conversion/bitcast u32 to f32", 1, "bitcast<f32>(x)")
            .exact1(&bits, f32::from_bits),
    );
    cases.push(
        Lanes::new(
            "conversion/bitcast vec3<u32> to vec3<f32>",
            3,
            "bitcast<vec3<f32>>(x)",
        )
        .exact1(&bits, f32::from_bits),
    );
    cases.push(
        Lanes::new(
            "conversion/bitcast vec2<f32> to vec2<i32>",
            2,
            "bitcast<vec2<i32>>(x)",
        )
        .exact1(&f32s, |x| x.to_bits() as i32),
    );
    let all = Lanes::new("conversion/bitcast f32 to u32/ieee", 1, "bitcast<u32>(x)");
    cases.push(all.exact1(pool::F32, f32::to_bits).scope(Scope::Ptx));
    cases.push(
        Lanes::new("conversion/bitcast f64 to u64", 1, "bitcast<u64>(x)")
            .exact1(&f64s, f64::to_bits),
    );
    cases.push(
        Lanes::new("conversion/bitcast i64 to u64", 1, "bitcast<u64>(x)")
            .exact1(pool::I64, |x| x as u64),
    );
    cases.push(
        Lanes::new("conversion/bitcast u64 to i64", 1, "bitcast<i64>(x)")
            .exact1(pool::U64, |x| x as i64),
    );
    let bits = f64s.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    cases.push(
        Lanes::new("conversion/bitcast u64 to f64", 1, "bitcast<f64>(x)")
            .exact1(&bits, f64::from_bits),
    );
}
