//! Subgroup operations. What they yield depends on the number of invocations in a subgroup, and
//! only on that: invocations are taken in the order of their index.

use crate::case::{Case, Element, Features, Number, Output, Wanted};

/// Invocations: two workgroups of 96.
const COUNT: usize = 192;
const GROUP: usize = 96;

/// The operand of an invocation; also what the shaders compute.
fn operand(i: usize) -> u32 {
    (i as u32 * 7 + 3) % 23
}

pub fn cases() -> Vec<Case> {
    let mut cases = votes();
    cases.extend(reductions_u32());
    cases.extend(reductions_i32());
    cases.extend(reductions_f32());
    cases.extend(gathers());
    cases.extend(other_types());
    cases.extend(places());
    cases
}

/// One word per invocation; `x` is the operand as `ty`, and `lane`, `size` and `l` are available.
fn case(
    name: &str,
    features: Features,
    ty: &str,
    expression: &str,
    expected: fn(usize) -> Vec<Output>,
) -> Case {
    let enable = if ty.contains("f16") {
        "enable f16;\n"
    } else {
        ""
    };
    let source = format!(
        "{enable}@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n@compute @workgroup_size({GROUP})\n\
         fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) l: u32, @builtin(subgroup_invocation_id) lane: u32,\n    \
         @builtin(subgroup_size) size: u32) {{\n    let n = (id.x * 7u + 3u) % 23u;\n    let x = {ty}(n);\n    out[id.x] = {expression};\n    _ = lane + size + l;\n}}\n"
    );
    Case::new(format!("subgroup/{name}"), source)
        .features(Features::SUBGROUP.and(features))
        .groups(2, 1, 1)
        .output_by_subgroup_size(COUNT, expected)
}

/// The result of each invocation from the operands of its subgroup and its index there.
fn each<T: Number>(size: usize, f: impl Fn(&[u32], usize) -> T) -> Vec<Output> {
    let operands = (0..COUNT).map(operand).collect::<Vec<_>>();
    let groups = operands.chunks(GROUP).flat_map(|group| group.chunks(size));
    let values = groups
        .flat_map(|subgroup| {
            (0..subgroup.len())
                .map(|lane| f(subgroup, lane))
                .collect::<Vec<_>>()
        })
        .collect::<Vec<T>>();
    vec![Output {
        buffer: 0,
        element: T::ELEMENT,
        wanted: Wanted::Bits(bytemuck::cast_slice(&values).to_vec()),
    }]
}

macro_rules! table {
    ($($name:literal, $features:expr, $ty:literal, $expression:literal => $f:expr;)*) => {
        vec![$(case($name, $features, $ty, $expression, |size| each(size, $f))),*]
    };
}

const NONE: Features = Features::NONE;

fn votes() -> Vec<Case> {
    table! {
        "all/true", NONE, "u32", "u32(subgroupAll(x < 23u))" => |_, _| 1u32;
        "all", NONE, "u32", "u32(subgroupAll(x < 22u))" => |xs, _| u32::from(xs.iter().all(|&x| x < 22));
        "any", NONE, "u32", "u32(subgroupAny(x == 5u))" => |xs, _| u32::from(xs.contains(&5));
        "any/false", NONE, "u32", "u32(subgroupAny(x > 22u))" => |_, _| 0u32;
        "ballot", NONE, "u32", "subgroupBallot(x % 3u == 0u)[lane / 32u]" => |xs, lane| ballot(xs, lane, |x| x % 3 == 0);
        "ballot of all", NONE, "u32", "countOneBits(subgroupBallot().x)" => |xs, _| xs.len().min(32) as u32;
        "ballot, other words", NONE, "u32", "select(subgroupBallot(x < 100u).w, 0u, size > 96u)" => |_, _| 0u32;
    }
}

fn ballot(xs: &[u32], lane: usize, is: impl Fn(u32) -> bool) -> u32 {
    xs.chunks(32)
        .nth(lane / 32)
        .unwrap_or_default()
        .iter()
        .enumerate()
        .map(|(bit, &x)| u32::from(is(x)) << bit)
        .sum()
}

fn reductions_u32() -> Vec<Case> {
    table! {
        "add/u32", NONE, "u32", "subgroupAdd(x)" => |xs, _| xs.iter().sum::<u32>();
        "mul/u32", NONE, "u32", "subgroupMul(x | 1u)" => |xs, _| xs.iter().fold(1u32, |p, x| p.wrapping_mul(x | 1));
        "min/u32", NONE, "u32", "subgroupMin(x + 4294967200u)" => |xs, _| xs.iter().map(|x| x + 4_294_967_200).min().unwrap_or(0);
        "max/u32", NONE, "u32", "subgroupMax(x + 4294967200u)" => |xs, _| xs.iter().map(|x| x + 4_294_967_200).max().unwrap_or(0);
        "and/u32", NONE, "u32", "subgroupAnd(x | 68u)" => |xs, _| xs.iter().fold(!0, |p, x| p & (x | 68));
        "or/u32", NONE, "u32", "subgroupOr(x << 3u)" => |xs, _| xs.iter().fold(0u32, |p, x| p | x << 3);
        "xor/u32", NONE, "u32", "subgroupXor(x)" => |xs, _| xs.iter().fold(0u32, |p, x| p ^ x);
        "exclusive add/u32", NONE, "u32", "subgroupExclusiveAdd(x)" => |xs, lane| xs[..lane].iter().sum::<u32>();
        "inclusive add/u32", NONE, "u32", "subgroupInclusiveAdd(x)" => |xs, lane| xs[..=lane].iter().sum::<u32>();
        "exclusive mul/u32", NONE, "u32", "subgroupExclusiveMul(x | 1u)" => |xs, lane| xs[..lane].iter().fold(1u32, |p, x| p.wrapping_mul(x | 1));
        "inclusive mul/u32", NONE, "u32", "subgroupInclusiveMul(x | 1u)" => |xs, lane| xs[..=lane].iter().fold(1u32, |p, x| p.wrapping_mul(x | 1));
        "add/vec3<u32>", NONE, "u32", "dot(subgroupAdd(vec3<u32>(x, 1u, lane)), vec3<u32>(1u, 1000u, 100000u))" => |xs, _| {
            let n = xs.len() as u32;
            xs.iter().sum::<u32>() + n * 1000 + n * (n - 1) / 2 * 100_000
        };
        "exclusive add/vec2<u32>", NONE, "u32", "subgroupExclusiveAdd(vec2<u32>(x, 1u)).y" => |_, lane| lane as u32;
        "max/vec4<u32>", NONE, "u32", "subgroupMax(vec4<u32>(x, lane, 1u, 0u)).y" => |xs, _| xs.len() as u32 - 1;
    }
}

fn reductions_i32() -> Vec<Case> {
    table! {
        "add/i32", NONE, "i32", "bitcast<u32>(subgroupAdd(x - 11))" => |xs, _| xs.iter().map(|&x| x as i32 - 11).sum::<i32>();
        "mul/i32", NONE, "i32", "bitcast<u32>(subgroupMul((x - 11) | 1))" => |xs, _| xs.iter().fold(1i32, |p, &x| p.wrapping_mul((x as i32 - 11) | 1));
        "min/i32", NONE, "i32", "bitcast<u32>(subgroupMin(x - 11))" => |xs, _| xs.iter().map(|&x| x as i32 - 11).min().unwrap_or(0);
        "max/i32", NONE, "i32", "bitcast<u32>(subgroupMax(x - 30))" => |xs, _| xs.iter().map(|&x| x as i32 - 30).max().unwrap_or(0);
        "and/i32", NONE, "i32", "bitcast<u32>(subgroupAnd(x - 30))" => |xs, _| xs.iter().fold(-1, |p, &x| p & (x as i32 - 30));
        "or/i32", NONE, "i32", "bitcast<u32>(subgroupOr(x))" => |xs, _| xs.iter().fold(0, |p, &x| p | x as i32);
        "xor/i32", NONE, "i32", "bitcast<u32>(subgroupXor(-x))" => |xs, _| xs.iter().fold(0, |p, &x| p ^ -(x as i32));
        "exclusive add/i32", NONE, "i32", "bitcast<u32>(subgroupExclusiveAdd(x - 11))" => |xs, lane| xs[..lane].iter().map(|&x| x as i32 - 11).sum::<i32>();
        "inclusive add/i32", NONE, "i32", "bitcast<u32>(subgroupInclusiveAdd(x - 11))" => |xs, lane| xs[..=lane].iter().map(|&x| x as i32 - 11).sum::<i32>();
    }
}

/// Small integers and powers of two: no order of the operations changes the result.
fn reductions_f32() -> Vec<Case> {
    table! {
        "add/f32", NONE, "f32", "bitcast<u32>(subgroupAdd(x + 0.5))" => |xs, _| xs.iter().map(|&x| x as f32 + 0.5).sum::<f32>();
        "mul/f32", NONE, "f32", "bitcast<u32>(subgroupMul(select(0.5, 2.0, x > 10.0)))" => |xs, _| xs.iter().map(|&x| if x > 10 { 2.0f32 } else { 0.5 }).product::<f32>();
        "min/f32", NONE, "f32", "bitcast<u32>(subgroupMin(x - 11.5))" => |xs, _| xs.iter().map(|&x| x as f32 - 11.5).fold(f32::MAX, f32::min);
        "max/f32", NONE, "f32", "bitcast<u32>(subgroupMax(x - 30.5))" => |xs, _| xs.iter().map(|&x| x as f32 - 30.5).fold(f32::MIN, f32::max);
        "exclusive add/f32", NONE, "f32", "bitcast<u32>(subgroupExclusiveAdd(x + 0.25))" => |xs, lane| xs[..lane].iter().map(|&x| x as f32 + 0.25).fold(0.0, |a, b| a + b);
        "inclusive add/f32", NONE, "f32", "bitcast<u32>(subgroupInclusiveAdd(x + 0.25))" => |xs, lane| xs[..=lane].iter().map(|&x| x as f32 + 0.25).fold(0.0, |a, b| a + b);
        "exclusive mul/f32", NONE, "f32", "bitcast<u32>(subgroupExclusiveMul(select(0.5, 2.0, x > 10.0)))" => |xs, lane| xs[..lane].iter().map(|&x| if x > 10 { 2.0f32 } else { 0.5 }).product::<f32>();
        "inclusive mul/f32", NONE, "f32", "bitcast<u32>(subgroupInclusiveMul(select(0.5, 2.0, x > 10.0)))" => |xs, lane| xs[..=lane].iter().map(|&x| if x > 10 { 2.0f32 } else { 0.5 }).product::<f32>();
        "add/vec2<f32>", NONE, "f32", "bitcast<u32>(subgroupAdd(vec2<f32>(x, 0.5)).y)" => |xs, _| xs.len() as f32 * 0.5;
    }
}

fn gathers() -> Vec<Case> {
    // Lanes beyond the subgroup give undefined values: indices stay within it.
    table! {
        "broadcastFirst/u32", NONE, "u32", "subgroupBroadcastFirst(x)" => |xs, _| xs[0];
        "broadcastFirst/vec3<f32>", NONE, "f32", "u32(subgroupBroadcastFirst(vec3<f32>(1.0, 2.0, x)).z)" => |xs, _| xs[0];
        "broadcast/u32", NONE, "u32", "subgroupBroadcast(x, 3u)" => |xs, _| xs[3];
        "broadcast/i32", NONE, "i32", "bitcast<u32>(subgroupBroadcast(-x, 1u))" => |xs, _| -(xs[1] as i32);
        "broadcast/vec2<f32>", NONE, "f32", "bitcast<u32>(subgroupBroadcast(vec2<f32>(0.0, x), 2u).y)" => |xs, _| xs[2] as f32;
        "shuffle/u32", NONE, "u32", "subgroupShuffle(x, (lane * 3u + 1u) % size)" => |xs, lane| xs[(lane * 3 + 1) % xs.len()];
        "shuffle/i32", NONE, "i32", "bitcast<u32>(subgroupShuffle(x - 11, size - 1u - lane))" => |xs, lane| xs[xs.len() - 1 - lane] as i32 - 11;
        "shuffle/f32", NONE, "f32", "bitcast<u32>(subgroupShuffle(x * 0.5, lane ^ 1u))" => |xs, lane| xs[lane ^ 1] as f32 * 0.5;
        "shuffle/vec4<u32>", NONE, "u32", "subgroupShuffle(vec4<u32>(0u, 1u, 2u, x), (lane + 1u) % size).w" => |xs, lane| xs[(lane + 1) % xs.len()];
        "shuffleXor/u32", NONE, "u32", "subgroupShuffleXor(x, 3u)" => |xs, lane| xs[lane ^ 3];
        "shuffleXor/f32", NONE, "f32", "bitcast<u32>(subgroupShuffleXor(x, 2u))" => |xs, lane| xs[lane ^ 2] as f32;
        "shuffleUp/u32", NONE, "u32", "select(99u, subgroupShuffleUp(x, 2u), lane >= 2u)" => |xs, lane| if lane >= 2 { xs[lane - 2] } else { 99 };
        "shuffleDown/u32", NONE, "u32", "select(99u, subgroupShuffleDown(x, 3u), lane + 3u < size)" => |xs, lane| xs.get(lane + 3).copied().unwrap_or(99);
        "shuffleDown/vec2<i32>", NONE, "i32", "bitcast<u32>(select(99, subgroupShuffleDown(vec2<i32>(x, -x), 1u).y, lane + 1u < size))" => |xs, lane| xs.get(lane + 1).map_or(99, |&x| -(x as i32));
        "quadBroadcast/u32", NONE, "u32", "quadBroadcast(x, 2u)" => |xs, lane| xs[lane / 4 * 4 + 2];
        "quadBroadcast/f32", NONE, "f32", "bitcast<u32>(quadBroadcast(x, 0u))" => |xs, lane| xs[lane / 4 * 4] as f32;
        "quadSwapX/u32", NONE, "u32", "quadSwapX(x)" => |xs, lane| xs[lane ^ 1];
        "quadSwapY/f32", NONE, "f32", "bitcast<u32>(quadSwapY(x))" => |xs, lane| xs[lane ^ 2] as f32;
        "quadSwapDiagonal/vec2<u32>", NONE, "u32", "quadSwapDiagonal(vec2<u32>(x, 1u)).x" => |xs, lane| xs[lane ^ 3];
    }
}

fn other_types() -> Vec<Case> {
    let (half, long, double) = (Features::F16, Features::INT64, Features::F64);
    table! {
        "add/f16", half, "f16", "u32(subgroupAdd(x))" => |xs, _| xs.iter().sum::<u32>();
        "inclusive add/f16", half, "f16", "u32(subgroupInclusiveAdd(x))" => |xs, lane| xs[..=lane].iter().sum::<u32>();
        "min/f16", half, "f16", "u32(subgroupMin(x + 2.0h))" => |xs, _| xs.iter().min().map_or(0, |x| x + 2);
        "shuffle/f16", half, "f16", "u32(subgroupShuffle(x, lane ^ 1u))" => |xs, lane| xs[lane ^ 1];
        "broadcastFirst/vec2<f16>", half, "f16", "u32(subgroupBroadcastFirst(vec2<f16>(x, 1.0h)).x)" => |xs, _| xs[0];
        "add/u64", long, "u64", "u32(subgroupAdd(x << 33u) >> 33u)" => |xs, _| xs.iter().sum::<u32>();
        "max/i64", long, "i64", "u32(subgroupMax(x - 5000000000li) + 5000000000li)" => |xs, _| xs.iter().max().copied().unwrap_or(0);
        "xor/u64", long, "u64", "u32(subgroupXor(x << 40u) >> 40u)" => |xs, _| xs.iter().fold(0u32, |p, x| p ^ x);
        "exclusive add/i64", long, "i64", "u32(subgroupExclusiveAdd(x * 4294967296li) / 4294967296li)" => |xs, lane| xs[..lane].iter().sum::<u32>();
        "shuffle/u64", long, "u64", "u32(subgroupShuffle(x << 35u, lane ^ 2u) >> 35u)" => |xs, lane| xs[lane ^ 2];
        "add/f64", double, "f64", "u32(subgroupAdd(x * 0.5lf) * 2.0lf)" => |xs, _| xs.iter().sum::<u32>();
        "inclusive mul/f64", double, "f64", "u32(log2(f32(subgroupInclusiveMul(2.0lf))) + 0.5)" => |_, lane| lane as u32 + 1;
        "broadcast/f64", double, "f64", "u32(subgroupBroadcast(x, 3u))" => |xs, _| xs[3];
        "shuffleXor/f64", double, "f64", "u32(subgroupShuffleXor(x, 1u))" => |xs, lane| xs[lane ^ 1];
    }
}

/// Built-in values, and operations in a loop and a function.
fn places() -> Vec<Case> {
    let source = format!(
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n@compute @workgroup_size({GROUP})\n\
         fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(subgroup_invocation_id) lane: u32, @builtin(subgroup_size) size: u32,\n    \
         @builtin(subgroup_id) s: u32, @builtin(num_subgroups) n: u32) {{ out[id.x] = lane + size * 1000u + s * 1000000u + n * 100000000u; }}\n"
    );
    let values = Case::new("subgroup/built-in values", source)
        .features(Features::SUBGROUP)
        .groups(2, 1, 1)
        .output_by_subgroup_size(COUNT, |size| {
            let of = |i: usize| {
                (i % GROUP % size
                    + size * 1000
                    + i % GROUP / size * 1_000_000
                    + GROUP.div_ceil(size) * 100_000_000) as u32
            };
            let values = (0..COUNT).map(of).collect::<Vec<_>>();
            vec![Output {
                buffer: 0,
                element: Element::U32,
                wanted: Wanted::Bits(bytemuck::cast_slice(&values).to_vec()),
            }]
        });
    let sum = format!(
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\nvar<workgroup> parts: array<u32, {GROUP}>;\n\
         fn total(x: u32) -> u32 {{ return subgroupAdd(x); }}\n@compute @workgroup_size({GROUP})\n\
         fn main(@builtin(local_invocation_index) l: u32, @builtin(global_invocation_id) id: vec3<u32>, @builtin(subgroup_id) s: u32, @builtin(num_subgroups) n: u32,\n    \
         @builtin(subgroup_invocation_id) lane: u32) {{\n    let part = total((id.x * 7u + 3u) % 23u);\n    if (lane == 0u) {{ parts[s] = part; }}\n    workgroupBarrier();\n    \
         var all = 0u;\n    for (var k = 0u; k < n; k++) {{ all += parts[k]; }}\n    out[id.x] = all;\n    _ = l;\n}}\n"
    );
    let sums = Case::new("subgroup/sum over the workgroup", sum)
        .features(Features::SUBGROUP)
        .groups(2, 1, 1)
        .output_by_subgroup_size(COUNT, |_| {
            let values = (0..COUNT)
                .map(|i| {
                    (i / GROUP * GROUP..(i / GROUP + 1) * GROUP)
                        .map(operand)
                        .sum::<u32>()
                })
                .collect::<Vec<_>>();
            vec![Output {
                buffer: 0,
                element: Element::U32,
                wanted: Wanted::Bits(bytemuck::cast_slice(&values).to_vec()),
            }]
        });
    let barrier = case(
        "barrier",
        Features::SUBGROUP_BARRIER,
        "u32",
        "x + turn(l, lane)",
        |size| each(size, |xs, lane| xs[lane] + xs[lane ^ 1]),
    );
    let turn = format!(
        "var<workgroup> w: array<u32, {GROUP}>;\nfn turn(l: u32, lane: u32, x: u32) -> u32 {{ w[l] = x; subgroupBarrier(); return w[l ^ 1u]; }}\n@compute"
    );
    let source = barrier
        .source
        .replace("@compute", &turn)
        .replace("turn(l, lane)", "turn(l, lane, x)");
    vec![values, sums, Case { source, ..barrier }]
}
