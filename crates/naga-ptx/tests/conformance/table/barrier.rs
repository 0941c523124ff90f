//! Workgroup memory that invocations share: barriers, sums over a group, zeroing, large memory.

use crate::case::{Case, Features};

pub fn cases() -> Vec<Case> {
    let mut cases = vec![];
    for (size, shape) in [
        (2, "2"),
        (32, "32"),
        (64, "64"),
        (100, "100"),
        (33, "33"),
        (256, "256"),
        (64, "8, 8"),
        (60, "3, 4, 5"),
    ] {
        cases.push(tree_sum(size, shape));
    }
    cases.extend(exchanges());
    cases.extend(uniform_loads());
    cases.extend(zeroed());
    cases.extend(loops());
    cases.push(large());
    cases
}

/// Halves the number of summands in each iteration; odd numbers of invocations too.
fn tree_sum(size: u32, shape: &str) -> Case {
    let source = format!(
        "@group(0) @binding(0) var<storage, read> data: array<u32>;\n@group(0) @binding(1) var<storage, read_write> out: array<u32>;\n\
         var<workgroup> part: array<u32, {size}>;\n@compute @workgroup_size({shape})\n\
         fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3<u32>) {{\n    part[i] = data[w.x * {size}u + i];\n    workgroupBarrier();\n    \
         var left = {size}u;\n    while (left > 1u) {{\n        let half = (left + 1u) / 2u;\n        if (i + half < left) {{ part[i] += part[i + half]; }}\n        left = half;\n        \
         workgroupBarrier();\n    }}\n    if (i == 0u) {{ out[w.x] = part[0]; }}\n}}\n"
    );
    let data = (0..3 * size)
        .map(|i| i.wrapping_mul(0x9e37_79b9) >> 12)
        .collect::<Vec<_>>();
    let sums = data
        .chunks(size as usize)
        .map(|group| group.iter().sum())
        .collect::<Vec<u32>>();
    Case::new(
        format!("barrier/tree sum/{}", shape.replace(", ", "x")),
        source,
    )
    .groups(3, 1, 1)
    .read(&data)
    .output(&sums)
}

fn exchanges() -> Vec<Case> {
    let reversed = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;\nvar<workgroup> w: array<u32, 96>;\n@compute @workgroup_size(96)\n\
        fn main(@builtin(local_invocation_index) i: u32, @builtin(global_invocation_id) g: vec3<u32>) { w[95u - i] = data[g.x]; workgroupBarrier(); data[g.x] = w[i]; }\n";
    let data = (0..192).collect::<Vec<u32>>();
    let turned = data
        .chunks(96)
        .flat_map(|group| group.iter().rev().copied())
        .collect::<Vec<_>>();
    let doubled = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;\nvar<workgroup> w: array<array<u32, 64>, 2>;\n@compute @workgroup_size(64)\n\
        fn main(@builtin(local_invocation_index) i: u32) {\n    w[0][i] = data[i];\n    workgroupBarrier();\n    for (var round = 0u; round < 6u; round++) {\n        \
        let from_ = round % 2u;\n        let step = 1u << round;\n        var sum = w[from_][i];\n        if (i >= step) { sum += w[from_][i - step]; }\n        w[1u - from_][i] = sum;\n        \
        workgroupBarrier();\n    }\n    data[i] = w[0][i];\n}\n";
    let mut sum = 0;
    let scan = (0..64u32)
        .map(|i| {
            sum += i * 7 + 1;
            sum
        })
        .collect::<Vec<_>>();
    let storage = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;\n@compute @workgroup_size(64)\n\
        fn main(@builtin(local_invocation_index) i: u32) { data[i] = i * i; storageBarrier(); let other = data[63u - i]; storageBarrier(); data[i] += other; }\n";
    let tile = "@group(0) @binding(0) var<storage, read> a: array<f32>;\n@group(0) @binding(1) var<storage, read_write> out: array<f32>;\nvar<workgroup> t: array<array<f32, 17>, 16>;\n\
        @compute @workgroup_size(16, 16)\nfn main(@builtin(local_invocation_id) l: vec3<u32>, @builtin(workgroup_id) w: vec3<u32>) {\n    \
        t[l.y][l.x] = a[(w.y * 16u + l.y) * 32u + w.x * 16u + l.x];\n    workgroupBarrier();\n    out[(w.x * 16u + l.y) * 32u + w.y * 16u + l.x] = t[l.x][l.y];\n}\n";
    let a = (0..1024).map(|i| i as f32).collect::<Vec<_>>();
    let transposed = (0..1024)
        .map(|i| a[i % 32 * 32 + i / 32])
        .collect::<Vec<_>>();
    vec![
        Case::new("barrier/reversal", reversed)
            .groups(2, 1, 1)
            .write(&data, &turned),
        Case::new("barrier/double-buffered scan", doubled)
            .write(&(0..64).map(|i| i * 7 + 1).collect::<Vec<u32>>(), &scan),
        Case::new("barrier/storageBarrier", storage).output(
            &(0..64u32)
                .map(|i| i * i + (63 - i) * (63 - i))
                .collect::<Vec<_>>(),
        ),
        Case::new("barrier/transposed tiles", tile)
            .groups(2, 2, 1)
            .read(&a)
            .output(&transposed),
    ]
}

fn uniform_loads() -> Vec<Case> {
    let head = "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n";
    let scalar = format!(
        "{head}var<workgroup> w: u32;\n@compute @workgroup_size(48)\nfn main(@builtin(local_invocation_index) i: u32, @builtin(global_invocation_id) g: vec3<u32>) {{\n    \
         if (i == 5u) {{ w = g.x + 7u; }}\n    let first = workgroupUniformLoad(&w);\n    if (i == 6u) {{ w = 1u; }}\n    let second = workgroupUniformLoad(&w);\n    out[g.x] = first * 10u + second;\n}}\n"
    );
    let wanted = (0..96u32)
        .map(|g| (g / 48 * 48 + 12) * 10 + 1)
        .collect::<Vec<_>>();
    let structure = format!(
        "{head}struct S {{ v: vec3<u32>, a: array<u32, 3> }}\nvar<workgroup> w: S;\n@compute @workgroup_size(32)\nfn main(@builtin(local_invocation_index) i: u32) {{\n    \
         if (i < 3u) {{ w.v[i] = i + 1u; w.a[2u - i] = i * 100u; }}\n    let s = workgroupUniformLoad(&w);\n    out[i] = s.v.x + s.v.y * 10u + s.v.z * 100u + s.a[i % 3u] * 10u;\n}}\n"
    );
    let of_structure = (0..32u32)
        .map(|i| 321 + (2 - i % 3) * 1000)
        .collect::<Vec<_>>();
    // The loaded value is uniform, so that a barrier may depend on it.
    let bound = format!(
        "{head}var<workgroup> rounds: u32;\nvar<workgroup> w: array<u32, 32>;\n@compute @workgroup_size(32)\nfn main(@builtin(local_invocation_index) i: u32) {{\n    \
         if (i == 31u) {{ rounds = 4u; }}\n    w[i] = i;\n    let n = workgroupUniformLoad(&rounds);\n    for (var k = 0u; k < n; k++) {{\n        let v = w[(i + 1u) % 32u];\n        \
         workgroupBarrier();\n        w[i] = v;\n        workgroupBarrier();\n    }}\n    out[i] = w[i];\n}}\n"
    );
    vec![
        Case::new("barrier/workgroupUniformLoad/u32", scalar)
            .groups(2, 1, 1)
            .output(&wanted),
        Case::new("barrier/workgroupUniformLoad/structure", structure).output(&of_structure),
        Case::new("barrier/workgroupUniformLoad/bound of a loop", bound)
            .output(&(0..32u32).map(|i| (i + 4) % 32).collect::<Vec<_>>()),
    ]
}

/// Workgroup memory begins as zero in every group, although an earlier group filled it.
fn zeroed() -> Vec<Case> {
    let zero = |name: &str, features: Features, declaration: &str, sum: &str, fill: &str| {
        let enable = if features.contains(Features::F16) {
            "enable f16;\n"
        } else {
            ""
        };
        let source = format!(
            "{enable}@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n{declaration}\n@compute @workgroup_size(40)\n\
             fn main(@builtin(local_invocation_index) i: u32, @builtin(global_invocation_id) g: vec3<u32>) {{\n    out[g.x] = {sum};\n    workgroupBarrier();\n    {fill}\n}}\n"
        );
        Case::new(format!("barrier/zeroed/{name}"), source)
            .features(features)
            .groups(4, 1, 1)
            .write(&[99u32; 160], &[0; 160])
    };
    let none = Features::NONE;
    vec![
        zero(
            "u32 array",
            none,
            "var<workgroup> w: array<u32, 123>;",
            "w[i] | w[i + 40u] | w[i + 80u] | w[122]",
            "w[i] = 1u; w[i + 83u] = 2u;",
        ),
        zero(
            "vec3 and matrix",
            none,
            "var<workgroup> v: vec3<f32>; var<workgroup> m: array<mat3x3<f32>, 5>;",
            "u32(v.z) + u32(m[i % 5u][i % 3u].y)",
            "if (i < 5u) { m[i][2].y = 4.0; } if (i == 7u) { v.z = 3.0; }",
        ),
        zero(
            "structure",
            none,
            "struct S { a: u32, b: vec3<f32>, c: bool, d: array<i32, 3> } var<workgroup> s: array<S, 40>;",
            "s[i].a + u32(s[39u - i].b.z) + u32(s[i].c) + u32(s[i].d[i % 3u])",
            "s[i] = S(1u, vec3<f32>(1.0), true, array<i32, 3>(1, 2, 3));",
        ),
        zero(
            "atomics",
            none,
            "struct A { n: atomic<u32>, m: array<atomic<i32>, 4> } var<workgroup> a: A;",
            "atomicLoad(&a.n) + u32(atomicLoad(&a.m[i % 4u]))",
            "atomicAdd(&a.n, 1u); atomicMax(&a.m[i % 4u], 7);",
        ),
        zero(
            "f16",
            Features::F16,
            "var<workgroup> h: array<f16, 41>; var<workgroup> v: vec3<f16>;",
            "u32(h[i] + h[40] + v.z)",
            "h[i + 1u] = 2.0h; if (i == 0u) { v = vec3<f16>(1.0h); }",
        ),
        zero(
            "64 bits",
            Features::INT64,
            "var<workgroup> l: array<i64, 40>; var<workgroup> u: u64;",
            "u32(l[39u - i]) + u32(u)",
            "l[i] = -1li; if (i == 3u) { u = 5lu; }",
        ),
        zero(
            "f64",
            Features::F64,
            "var<workgroup> d: array<vec2<f64>, 40>;",
            "u32(d[i].x + d[39u - i].y)",
            "d[i] = vec2<f64>(3.0lf, 4.0lf);",
        ),
    ]
}

fn loops() -> Vec<Case> {
    let in_uniform_branch = "@group(0) @binding(0) var<storage, read> n: array<u32>;\n@group(0) @binding(1) var<storage, read_write> out: array<u32>;\nvar<workgroup> w: array<u32, 64>;\n\
        @compute @workgroup_size(64)\nfn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3<u32>, @builtin(global_invocation_id) id: vec3<u32>) {\n    w[i] = i;\n    \
        if (g.x % 2u == 0u) { workgroupBarrier(); let v = w[63u - i]; workgroupBarrier(); w[i] = v; } else { w[i] *= 2u; }\n    workgroupBarrier();\n    out[id.x] = w[(i + 1u) % 64u];\n    _ = n[0];\n}\n";
    let branch = (0..256u32).map(|id| {
        let j = (id + 1) % 64;
        if id / 64 % 2 == 0 { 63 - j } else { 2 * j }
    });
    let in_function = "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\nvar<workgroup> w: array<u32, 40>;\nfn turn(i: u32) -> u32 { workgroupBarrier(); let v = w[(i + 7u) % 40u]; workgroupBarrier(); return v; }\n\
        @compute @workgroup_size(40)\nfn main(@builtin(local_invocation_index) i: u32) { w[i] = i; for (var k = 0u; k < 3u; k++) { let v = turn(i); w[i] = v; } out[i] = w[i]; }\n";
    vec![
        Case::new("barrier/uniform branch", in_uniform_branch)
            .groups(4, 1, 1)
            .read(&[0u32])
            .output(&branch.collect::<Vec<_>>()),
        Case::new("barrier/in a function", in_function)
            .output(&(0..40u32).map(|i| (i + 21) % 40).collect::<Vec<_>>()),
    ]
}

/// 64 KiB in two variables.
fn large() -> Case {
    let source = "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\nvar<workgroup> a: array<u32, 12288>;\nvar<workgroup> b: array<vec4<u32>, 1024>;\n@compute @workgroup_size(128)\n\
        fn main(@builtin(local_invocation_index) i: u32) {\n    let zero = a[i] + b[1023u - i].w;\n    workgroupBarrier();\n    for (var k = i; k < 12288u; k += 128u) { a[k] = k; }\n    \
        for (var k = i; k < 1024u; k += 128u) { b[k] = vec4<u32>(k); }\n    workgroupBarrier();\n    out[i] = a[12287u - i] + b[(i * 8u) % 1024u].z + zero;\n}\n";
    let wanted = (0..128u32).map(|i| 12287 - i + i * 8).collect::<Vec<_>>();
    Case::new("barrier/large workgroup memory", source)
        .features(Features::LARGE_SHARED)
        .output(&wanted)
}
