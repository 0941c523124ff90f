//! Atomic operations in buffers and in workgroup memory, with and without use of the result.

use crate::case::{Case, Features, Number};

/// Invocations: three workgroups.
const COUNT: u32 = 192;

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for space in [Space::Storage, Space::Workgroup] {
        words(&mut cases, space);
        cases.extend(results(space));
    }
    cases.extend(exchanges());
    cases.extend(longs());
    cases.extend(floats());
    cases.push(members());
    cases
}

#[derive(Clone, Copy, PartialEq)]
enum Space {
    Storage,
    Workgroup,
}

impl Space {
    fn name(self) -> &'static str {
        if self == Space::Storage {
            "storage"
        } else {
            "workgroup"
        }
    }
}

/// Every operation by all invocations on one cell, the result unused. In workgroup memory each
/// group writes its own cell's contents out.
fn words(cases: &mut Vec<Case>, space: Space) {
    let operand = |i: u32| i.wrapping_mul(0x9e37_79b9) | 1;
    let shader = |what: &str, first: u32| {
        contention(
            space,
            "u32",
            what,
            &format!("{first}u"),
            "(i * 0x9e3779b9u) | 1u",
        )
    };
    let unsigned: [Operation<u32>; 7] = [
        ("Add", 5, u32::wrapping_add),
        ("Sub", 5, u32::wrapping_sub),
        ("Min", 0xffff_fff0, |a, b| a.min(b)),
        ("Max", 3, |a, b| a.max(b)),
        ("And", !0, |a, b| a & b),
        ("Or", 1 << 31, |a, b| a | b),
        ("Xor", 0x1234_5678, |a, b| a ^ b),
    ];
    cases.extend(unsigned.map(|operation| {
        contended(
            space,
            "u32",
            operation,
            shader(operation.0, operation.1),
            operand,
        )
    }));
    let operand = |i: u32| (i as i32).wrapping_mul(-54_321) ^ 77;
    let shader = |what: &str, first: i32| {
        contention(
            space,
            "i32",
            what,
            &first.to_string(),
            "(i32(i) * -54321) ^ 77",
        )
    };
    let signed: [Operation<i32>; 7] = [
        ("Add", 5, i32::wrapping_add),
        ("Sub", 5, i32::wrapping_sub),
        ("Min", 7, |a, b| a.min(b)),
        ("Max", -7, |a, b| a.max(b)),
        ("And", -1, |a, b| a & b),
        ("Or", 0, |a, b| a | b),
        ("Xor", 99, |a, b| a ^ b),
    ];
    cases.extend(signed.map(|operation| {
        contended(
            space,
            "i32",
            operation,
            shader(operation.0, operation.1),
            operand,
        )
    }));
}

/// The end of a built-in function's name, the cell's first contents, and what the function does to
/// them.
type Operation<T> = (&'static str, T, fn(T, T) -> T);

fn contended<T: Number>(
    space: Space,
    ty: &str,
    (what, first, f): Operation<T>,
    source: String,
    operand: fn(u32) -> T,
) -> Case {
    let fold = |range: std::ops::Range<u32>| range.fold(first, |value, i| f(value, operand(i)));
    let case = Case::new(
        format!("atomic/{}/{}/{ty}", space.name(), what.to_lowercase()),
        source,
    )
    .groups(3, 1, 1);
    match space {
        Space::Storage => case.write(&[first], &[fold(0..COUNT)]),
        Space::Workgroup => case.output(&[fold(0..64), fold(64..128), fold(128..192)]),
    }
}

fn contention(space: Space, ty: &str, what: &str, first: &str, operand: &str) -> String {
    let entry = "@compute @workgroup_size(64)\nfn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) l: u32) {\n    let i = id.x;\n";
    match space {
        Space::Storage => {
            format!(
                "@group(0) @binding(0) var<storage, read_write> cell: atomic<{ty}>;\n{entry}    atomic{what}(&cell, {operand});\n    _ = l;\n}}\n"
            )
        }
        Space::Workgroup => format!(
            "@group(0) @binding(0) var<storage, read_write> out: array<{ty}>;\nvar<workgroup> cell: atomic<{ty}>;\n{entry}    if (l == 0u) {{ atomicStore(&cell, {first}); }}\n    \
             workgroupBarrier();\n    atomic{what}(&cell, {operand});\n    workgroupBarrier();\n    if (l == 0u) {{ out[i / 64u] = atomicLoad(&cell); }}\n}}\n"
        ),
    }
}

/// The old value is returned: each invocation on its own cell, and on one shared counter.
fn results(space: Space) -> Vec<Case> {
    let (declaration, entry) = match space {
        Space::Storage => (
            "@group(0) @binding(1) var<storage, read_write> cells: array<atomic<i32>, 64>;",
            "",
        ),
        Space::Workgroup => (
            "var<workgroup> cells: array<atomic<i32>, 64>;",
            "workgroupBarrier();",
        ),
    };
    let source = format!(
        "@group(0) @binding(0) var<storage, read_write> out: array<i32>;\n{declaration}\n@compute @workgroup_size(64)\nfn main(@builtin(local_invocation_index) i: u32) {{\n    \
         let x = i32(i);\n    atomicStore(&cells[i], x - 20);\n    {entry}\n    let o = i * 9u;\n    out[o] = atomicAdd(&cells[i], 100);\n    out[o + 1u] = atomicSub(&cells[i], 3);\n    \
         out[o + 2u] = atomicMax(&cells[i], 90);\n    out[o + 3u] = atomicMin(&cells[i], 120);\n    out[o + 4u] = atomicAnd(&cells[i], 0xff);\n    out[o + 5u] = atomicOr(&cells[i], 0x300);\n    \
         out[o + 6u] = atomicXor(&cells[i], -1);\n    out[o + 7u] = atomicExchange(&cells[i], x);\n    out[o + 8u] = atomicLoad(&cells[i]);\n}}\n"
    );
    let steps: [fn(i32) -> i32; 7] = [
        |v| v + 100,
        |v| v - 3,
        |v| v.max(90),
        |v| v.min(120),
        |v| v & 0xff,
        |v| v | 0x300,
        |v| !v,
    ];
    let mut wanted = Vec::new();
    for x in 0..64 {
        let mut value = x - 20;
        for step in steps {
            wanted.push(value);
            value = step(value);
        }
        wanted.extend([value, x]);
    }
    let olds = Case::new(format!("atomic/{}/old values", space.name()), source).output(&wanted);
    let olds = if space == Space::Storage {
        olds.write(&[0i32; 64], &(0..64).collect::<Vec<_>>())
    } else {
        olds
    };
    let declaration = match space {
        Space::Storage => "@group(0) @binding(1) var<storage, read_write> next: atomic<u32>;",
        Space::Workgroup => "var<workgroup> next: atomic<u32>;",
    };
    // Every ticket is drawn exactly once, by any invocation.
    let source = format!(
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n{declaration}\n@compute @workgroup_size(96)\nfn main() {{\n    \
         let ticket = atomicAdd(&next, 1u);\n    out[ticket] = ticket + 1u;\n}}\n"
    );
    let tickets = Case::new(format!("atomic/{}/tickets", space.name()), source)
        .output(&(1..=96).collect::<Vec<u32>>());
    let tickets = if space == Space::Storage {
        tickets.write(&[0u32], &[96])
    } else {
        tickets
    };
    vec![olds, tickets]
}

fn exchanges() -> Vec<Case> {
    let mut cases = Vec::new();
    for (ty, suffix) in [("u32", "u"), ("i32", "")] {
        for (space, cell) in [
            (
                "storage",
                format!("@group(0) @binding(1) var<storage, read_write> cell: atomic<{ty}>;"),
            ),
            ("workgroup", format!("var<workgroup> cell: atomic<{ty}>;")),
        ] {
            // A loop around the exchange: the sum is right only if no two invocations succeed on
            // one old value.
            let source = format!(
                "@group(0) @binding(0) var<storage, read_write> out: array<{ty}>;\n{cell}\n@compute @workgroup_size(64)\nfn main(@builtin(local_invocation_index) i: u32) {{\n    \
                 var done = false;\n    var old = atomicLoad(&cell);\n    while (!done) {{\n        let r = atomicCompareExchangeWeak(&cell, old, old * 1{suffix} + {ty}(i) + 1{suffix});\n        \
                 done = r.exchanged;\n        old = r.old_value;\n    }}\n    workgroupBarrier();\n    if (i == 0u) {{ out[0] = atomicLoad(&cell); }}\n    \
                 if (i == 1u) {{ let r = atomicCompareExchangeWeak(&cell, 1{suffix}, 5{suffix}); out[1] = r.old_value; out[2] = select(0{suffix}, 1{suffix}, r.exchanged); }}\n}}\n"
            );
            let case = Case::new(format!("atomic/{space}/compareExchangeWeak/{ty}"), source)
                .output(&[2080u32, 2080, 0]);
            cases.push(if space == "storage" {
                case.write(&[0u32], &[2080])
            } else {
                case
            });
        }
    }
    // The value of every invocation goes in, and all except one come out; the last one is drawn at
    // the end.
    let source = "@group(0) @binding(0) var<storage, read_write> sum: atomic<u32>;\n@group(0) @binding(1) var<storage, read_write> cell: atomic<u32>;\n@compute @workgroup_size(64)\n\
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {\n    let old = atomicExchange(&cell, id.x + 1u);\n    atomicAdd(&sum, old);\n    workgroupBarrier();\n    storageBarrier();\n    \
        if (id.x == 63u) { atomicAdd(&sum, atomicExchange(&cell, 7u)); }\n}\n";
    cases.push(
        Case::new("atomic/storage/exchange/contention", source)
            .write(&[0u32], &[2080])
            .write(&[0u32], &[7]),
    );
    cases
}

fn longs() -> Vec<Case> {
    let operations: [Operation<u64>; 7] = [
        ("Max", 3, |a, b| a.max(b)),
        ("Min", !0, |a, b| a.min(b)),
        ("Add", 5, u64::wrapping_add),
        ("Sub", 5, u64::wrapping_sub),
        ("And", !0, |a, b| a & b),
        ("Or", 1 << 63, |a, b| a | b),
        ("Xor", 0x1234_5678_9abc_def0, |a, b| a ^ b),
    ];
    let mut cases = Vec::new();
    for (what, first, f) in operations {
        let source = format!(
            "@group(0) @binding(0) var<storage, read_write> cell: atomic<u64>;\n@compute @workgroup_size(64)\n\
             fn main(@builtin(global_invocation_id) id: vec3<u32>) {{ atomic{what}(&cell, u64(id.x) * 0x9e3779b97f4a7c15lu | 1lu); }}\n"
        );
        let wanted = (0..u64::from(COUNT)).fold(first, |value, i| {
            f(value, i.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
        });
        let needs = if matches!(what, "Max" | "Min") {
            Features::INT64_ATOMIC_MIN_MAX
        } else {
            Features::INT64_ATOMIC
        };
        let case = Case::new(
            format!("atomic/storage/{}/u64", what.to_lowercase()),
            source,
        )
        .features(Features::INT64.and(needs));
        cases.push(case.groups(3, 1, 1).write(&[first], &[wanted]));
    }
    let source = "@group(0) @binding(0) var<storage, read_write> out: array<i64>;\n@group(0) @binding(1) var<storage, read_write> cells: array<atomic<i64>, 4>;\n@compute @workgroup_size(4)\n\
        fn main(@builtin(local_invocation_index) i: u32) {\n    let a = atomicAdd(&cells[i], 4294967296li);\n    let b = atomicExchange(&cells[i], -5li);\n    \
        let c = atomicMax(&cells[i], i64(i) - 6li);\n    let r = atomicCompareExchangeWeak(&cells[i], -5li, 77li);\n    \
        out[i * 4u] = a; out[i * 4u + 1u] = b; out[i * 4u + 2u] = c; out[i * 4u + 3u] = r.old_value;\n}\n";
    let wanted = (0..4i64)
        .flat_map(|i| [i, i + (1 << 32), -5, (-5).max(i - 6)])
        .collect::<Vec<_>>();
    let left = (0..4i64)
        .map(|i| if i - 6 > -5 { i - 6 } else { 77 })
        .collect::<Vec<_>>();
    let case = Case::new("atomic/storage/old values/i64", source).features(
        Features::INT64
            .and(Features::INT64_ATOMIC)
            .and(Features::INT64_ATOMIC_MIN_MAX),
    );
    cases.push(case.output(&wanted).write(&[0i64, 1, 2, 3], &left));
    cases
}

/// Sums of small integers, which no order of adding changes.
fn floats() -> Vec<Case> {
    let source = "@group(0) @binding(0) var<storage, read_write> sum: atomic<f32>;\n@compute @workgroup_size(64)\n\
        fn main(@builtin(global_invocation_id) id: vec3<u32>) { atomicAdd(&sum, f32(id.x) + 0.5); }\n";
    let total = (0..COUNT).map(|i| i as f32 + 0.5).sum::<f32>();
    let results = "@group(0) @binding(0) var<storage, read_write> out: array<f32>;\n@group(0) @binding(1) var<storage, read_write> cells: array<atomic<f32>, 8>;\n@compute @workgroup_size(8)\n\
        fn main(@builtin(local_invocation_index) i: u32) { out[i * 2u] = atomicAdd(&cells[i], 1.25); out[i * 2u + 1u] = atomicExchange(&cells[i], f32(i)); }\n";
    let olds = (0..8)
        .flat_map(|i| [i as f32 * 3.0, i as f32 * 3.0 + 1.25])
        .collect::<Vec<_>>();
    let subtract = source.replace("atomicAdd", "atomicSub");
    vec![
        Case::new("atomic/storage/add/f32", source)
            .features(Features::F32_ATOMIC)
            .groups(3, 1, 1)
            .write(&[2.0f32], &[total + 2.0]),
        Case::new("atomic/storage/sub/f32", subtract)
            .features(Features::F32_ATOMIC)
            .groups(3, 1, 1)
            .write(&[2.0f32], &[2.0 - total]),
        Case::new("atomic/storage/old values/f32", results)
            .features(Features::F32_ATOMIC)
            .output(&olds)
            .write(
                &[0.0f32, 3.0, 6.0, 9.0, 12.0, 15.0, 18.0, 21.0],
                &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
            ),
    ]
}

/// Atomics as members next to plain data, and a histogram.
fn members() -> Case {
    let source = "struct Bin { n: atomic<u32>, @size(12) least: atomic<i32> } struct Bins { total: atomic<u32>, scale: u32, bins: array<Bin, 5> }\n\
        @group(0) @binding(0) var<storage, read_write> b: Bins;\nfn bin(x: u32) -> u32 { return x * b.scale % 5u; }\n@compute @workgroup_size(64)\n\
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {\n    let k = bin(id.x);\n    atomicAdd(&b.bins[k].n, 1u);\n    let least = &b.bins[k].least;\n    atomicMin(least, -i32(id.x));\n    \
        if (atomicAdd(&b.total, 1u) > 1000u) { atomicStore(&b.total, 0u); }\n}\n";
    let mut before = vec![0u32; 2 + 5 * 4];
    before[1] = 3;
    let mut after = before.clone();
    after[0] = COUNT;
    for i in 0..COUNT {
        let bin = 2 + 4 * (i * 3 % 5) as usize;
        after[bin] += 1;
        after[bin + 1] = (after[bin + 1] as i32).min(-(i as i32)) as u32;
    }
    Case::new("atomic/storage/members", source)
        .groups(3, 1, 1)
        .write(&before, &after)
}
