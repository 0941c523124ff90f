//! Layout of members and elements in buffers: alignment, strides, padding, lengths.

use half::f16;

use crate::case::{Case, Features};

pub fn cases() -> Vec<Case> {
    let mut cases = uniforms();
    cases.extend(padding());
    cases.extend(structures());
    cases.extend(lengths());
    cases.extend(other_widths());
    cases
}

/// Words with floats placed at byte offsets.
fn words(count: usize, floats: &[(usize, &[f32])]) -> Vec<u32> {
    let mut words = vec![0xaaaa_aaaau32; count];
    for (offset, values) in floats {
        values
            .iter()
            .enumerate()
            .for_each(|(k, value)| words[offset / 4 + k] = value.to_bits());
    }
    words
}

fn uniforms() -> Vec<Case> {
    let mixed = "struct U { a: f32, b: vec2<f32>, c: vec3<f32>, d: u32, e: mat3x3<f32>, f: array<vec4<f32>, 2>, g: i32 }\n\
        @group(0) @binding(0) var<uniform> u: U;\n@group(0) @binding(1) var<storage, read_write> out: array<f32>;\n@compute @workgroup_size(1)\nfn main() {\n    \
        out[0] = u.a; out[1] = u.b.x; out[2] = u.b.y; out[3] = u.c.x; out[4] = u.c.z; out[5] = f32(u.d);\n    \
        for (var c = 0u; c < 3u; c++) { for (var r = 0u; r < 3u; r++) { out[6u + c * 3u + r] = u.e[c][r]; } }\n    \
        let all = u; for (var i = 0u; i < 2u; i++) { out[15u + i] = all.f[i].w; }\n    out[17] = f32(all.g);\n}\n";
    let mut bytes = words(
        32,
        &[
            (0, &[1.0]),
            (8, &[2.0, 3.0]),
            (16, &[4.0, 5.0, 6.0]),
            (32, &[11.0, 12.0, 13.0]),
            (48, &[14.0, 15.0, 16.0]),
            (64, &[17.0, 18.0, 19.0]),
            (80, &[20.0, 21.0, 22.0, 23.0]),
            (96, &[24.0, 25.0, 26.0, 27.0]),
        ],
    );
    (bytes[7], bytes[28]) = (7, -9i32 as u32);
    let values = [
        1.0f32, 2.0, 3.0, 4.0, 6.0, 7.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 19.0,
        23.0, 27.0, -9.0,
    ];
    let strided = "struct E { @size(16) v: u32 } struct U { @align(16) e: array<E, 4>, @align(32) last: vec2<u32> }\n\
        @group(0) @binding(0) var<uniform> u: U;\n@group(0) @binding(1) var<storage, read_write> out: array<u32>;\n@compute @workgroup_size(4)\n\
        fn main(@builtin(local_invocation_index) i: u32) { out[i] = u.e[i].v; if (i == 0u) { out[4] = u.last.y; } }\n";
    let mut strides = vec![0u32; 24];
    (strides[0], strides[4], strides[8], strides[12], strides[17]) = (5, 6, 7, 8, 9);
    let array = "@group(0) @binding(0) var<uniform> u: array<vec4<u32>, 3>;\n@group(0) @binding(1) var<storage, read_write> out: array<u32>;\n\
        @compute @workgroup_size(12)\nfn main(@builtin(local_invocation_index) i: u32) { out[i] = u[i / 4u][i % 4u]; }\n";
    let matrix = "struct U { m: mat4x2<f32>, n: mat2x3<f32> }\n@group(0) @binding(0) var<uniform> u: U;\n@group(0) @binding(1) var<storage, read_write> out: array<f32>;\n\
        @compute @workgroup_size(1)\nfn main() {\n    for (var i = 0u; i < 4u; i++) { out[i] = u.m[i].y; }\n    let v = u.n * vec2<f32>(1.0, 10.0);\n    out[4] = v.x; out[5] = v.z;\n}\n";
    let matrices = words(
        16,
        &[
            (0, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]),
            (32, &[1.0, 2.0, 3.0]),
            (48, &[4.0, 5.0, 6.0]),
        ],
    );
    vec![
        Case::new("layout/uniform structure", mixed)
            .uniform(&bytes)
            .output(&values),
        Case::new("layout/uniform @size and @align", strided)
            .uniform(&strides)
            .output(&[5u32, 6, 7, 8, 9]),
        Case::new("layout/uniform array of vec4", array)
            .uniform(&(0..12u32).map(|i| i * i).collect::<Vec<_>>())
            .output(&(0..12u32).map(|i| i * i).collect::<Vec<_>>()),
        Case::new("layout/uniform matrices", matrix)
            .uniform(&matrices)
            .output(&[2.0f32, 4.0, 6.0, 8.0, 41.0, 63.0]),
    ]
}

/// Bytes between members are unchanged.
fn padding() -> Vec<Case> {
    const OLD: u32 = 0xdead_0000;
    let before = (0..32).map(|i| OLD + i).collect::<Vec<u32>>();
    let after = |changes: &[(usize, u32)]| {
        let mut after = before.clone();
        changes.iter().for_each(|&(at, value)| after[at] = value);
        after
    };
    let case = |name: &str, declarations: &str, body: &str, changes: &[(usize, u32)]| {
        let source =
            format!("{declarations}\n@compute @workgroup_size(1)\nfn main() {{ {body} }}\n");
        Case::new(format!("layout/padding/{name}"), source).write(&before, &after(changes))
    };
    let array = "@group(0) @binding(0) var<storage, read_write> b: array<vec3<u32>>;";
    vec![
        case(
            "vec3 before a scalar",
            "struct S { v: vec3<u32>, s: u32 }\n@group(0) @binding(0) var<storage, read_write> b: array<S>;",
            "b[1].v = vec3<u32>(1u, 2u, 3u); b[2].s = 4u;",
            &[(4, 1), (5, 2), (6, 3), (11, 4)],
        ),
        case(
            "array of vec3",
            array,
            "b[1] = vec3<u32>(1u, 2u, 3u); b[3].y = 7u;",
            &[(4, 1), (5, 2), (6, 3), (13, 7)],
        ),
        case(
            "vec3 copied",
            array,
            "b[0] = b[2].zyx;",
            &[(0, OLD + 10), (1, OLD + 9), (2, OLD + 8)],
        ),
        case(
            "matrix of three rows",
            "@group(0) @binding(0) var<storage, read_write> b: array<mat2x3<f32>>;",
            "b[1] = mat2x3<f32>(1.0, 2.0, 3.0, 4.0, 5.0, 6.0); b[2][1].y = 7.0;",
            &[
                (8, 1f32.to_bits()),
                (9, 2f32.to_bits()),
                (10, 3f32.to_bits()),
                (12, 4f32.to_bits()),
                (13, 5f32.to_bits()),
                (14, 6f32.to_bits()),
                (21, 7f32.to_bits()),
            ],
        ),
        case(
            "@size and @align",
            "struct S { a: u32, @align(16) b: u32, @size(12) c: u32, d: u32 }\n@group(0) @binding(0) var<storage, read_write> b: array<S, 2>;",
            "b[0] = S(1u, 2u, 3u, 4u); b[1].d = 5u;",
            &[(0, 1), (4, 2), (5, 3), (8, 4), (20, 5)],
        ),
        case(
            "structure with a tail",
            "struct S { v: vec2<u32>, s: u32 }\n@group(0) @binding(0) var<storage, read_write> b: array<S>;",
            "var s = b[0]; s.s = 9u; b[2] = s; b[3].v.y = 1u;",
            &[(8, OLD), (9, OLD + 1), (10, 9), (13, 1)],
        ),
    ]
}

fn structures() -> Vec<Case> {
    let copies = "struct In { a: vec3<u32>, b: u32, c: array<vec2<u32>, 2> } struct Out { i: In, n: u32, m: mat2x2<f32> }\n\
        @group(0) @binding(0) var<storage, read> origin: array<Out>;\n@group(0) @binding(1) var<storage, read_write> to: array<Out>;\n@compute @workgroup_size(4)\n\
        fn main(@builtin(local_invocation_index) k: u32) {\n    var s = origin[3u - k];\n    s.i.c[k % 2u].y += 1000u;\n    s.m[1] += vec2<f32>(1.0);\n    to[k] = s;\n}\n";
    // In: a 0, b 12, c 16 to 32. Out: i 0, n 32, m 40 to 56, size 64.
    let element = |seed: u32, fill: bool| {
        let mut words = [0u32; 16];
        if fill {
            (0..9).for_each(|k| words[k] = seed * 100 + k as u32);
            (10..14).for_each(|k| words[k] = ((seed * 10 + k as u32) as f32).to_bits());
        }
        words
    };
    let from = (0..4)
        .flat_map(|seed| element(seed, true))
        .collect::<Vec<_>>();
    let to = (0..4u32).flat_map(|k| {
        let mut words = element(3 - k, true);
        words[5 + 2 * (k as usize % 2)] += 1000;
        [12, 13]
            .into_iter()
            .for_each(|at| words[at] = (f32::from_bits(words[at]) + 1.0).to_bits());
        words
    });
    let nested = "@group(0) @binding(0) var<storage, read> a: array<array<array<u32, 3>, 2>, 4>;\n@group(0) @binding(1) var<storage, read_write> out: array<u32>;\n\
        @compute @workgroup_size(24)\nfn main(@builtin(local_invocation_index) i: u32) { let row = a[i / 6u]; out[23u - i] = a[i / 6u][(i / 3u) % 2u][i % 3u] + row[0][0]; }\n";
    let flat = (0..24u32).map(|i| i * 7 + 1).collect::<Vec<_>>();
    let mut turned = vec![0; 24];
    (0..24).for_each(|i| turned[23 - i] = flat[i] + flat[i / 6 * 6]);
    let unused = "@group(0) @binding(0) var<storage, read> never: array<u32>;\n@group(0) @binding(2) var<storage, read> last: array<u32>;\n\
        @group(0) @binding(1) var<storage, read_write> out: array<u32>;\n@compute @workgroup_size(1)\nfn main() { out[0] = last[1]; }\n";
    vec![
        Case::new("layout/array of structures copied", copies)
            .read(&from)
            .output(&to.collect::<Vec<u32>>()),
        Case::new("layout/array of arrays", nested)
            .read(&flat)
            .output(&turned),
        Case::new("layout/unused buffer and bindings out of order", unused)
            .read(&[1u32])
            .output(&[6u32])
            .read(&[5u32, 6]),
    ]
}

fn lengths() -> Vec<Case> {
    let simple = "@group(0) @binding(0) var<storage, read> a: array<u32>;\n@group(0) @binding(1) var<storage, read> b: array<vec3<f32>>;\n\
        struct H { n: u32, items: array<vec2<f32>> }\n@group(0) @binding(2) var<storage, read> h: H;\n\
        struct S { v: vec3<f32>, k: array<u32, 3> } struct T { x: u32, y: vec3<u32>, items: array<S> }\n@group(0) @binding(3) var<storage, read> t: T;\n\
        @group(0) @binding(4) var<storage, read_write> out: array<u32>;\n@compute @workgroup_size(1)\nfn main() {\n    \
        out[0] = arrayLength(&a); out[1] = arrayLength(&b); out[2] = arrayLength(&h.items); out[3] = arrayLength(&t.items); out[4] = arrayLength(&out); out[5] = u32(h.items[2].y) + h.n + t.items[1].k[2];\n}\n";
    let header = words(
        10,
        &[
            (8, &[1.0, 2.0]),
            (16, &[3.0, 4.0]),
            (24, &[5.0, 6.0]),
            (32, &[7.0]),
        ],
    );
    let mut tail = vec![0u32; 8 + 2 * 8];
    tail[8 + 8 + 5] = 40;
    let header = [&[100], &header[1..]].concat();
    vec![
        // A part of an element at the end does not count.
        Case::new("layout/arrayLength", simple).read(&[0u32; 7]).read(&[0u32; 14]).read(&header).read(&tail).output(&[7u32, 3, 4, 2, 6, 146]),
        Case::new(
            "layout/arrayLength as the bound of a loop",
            "struct B { head: vec2<u32>, items: array<u32> }\n@group(0) @binding(0) var<storage, read_write> b: B;\n@compute @workgroup_size(1)\n\
             fn main() { for (var i = 0u; i < arrayLength(&b.items); i++) { b.head.x += b.items[i]; b.items[i] = i; } b.head.y = arrayLength(&b.items); }\n",
        )
        .write(&[0u32, 0, 10, 20, 30, 40, 50], &[150u32, 5, 0, 1, 2, 3, 4]),
    ]
}

fn other_widths() -> Vec<Case> {
    let halves = "enable f16;\nstruct S { a: f16, b: vec3<f16>, c: f32, d: vec2<f16>, e: mat2x3<f16> }\n@group(0) @binding(0) var<storage, read> s: S;\n\
        @group(0) @binding(1) var<storage, read_write> out: array<f16>;\n@compute @workgroup_size(1)\nfn main() {\n    \
        out[0] = s.a; out[1] = s.b.x; out[2] = s.b.z; out[3] = f16(s.c); out[4] = s.d.y; out[5] = s.e[0].y; out[6] = s.e[1].z; out[7] = (s.e * vec2<f16>(1.0h, 1.0h)).x;\n}\n";
    // a 0, b 8, c 16, d 20, e 24 to 40.
    let mut bytes = vec![f16::ZERO; 20];
    for (at, value) in [
        (0, 1.0),
        (4, 2.0),
        (5, 3.0),
        (6, 4.0),
        (10, 5.0),
        (11, 6.0),
        (12, 7.0),
        (13, 8.0),
        (14, 9.0),
        (16, 10.0),
        (17, 11.0),
        (18, 12.0),
    ] {
        bytes[at] = f16::from_f32(value);
    }
    let c = 2.5f32.to_bits();
    (bytes[8], bytes[9]) = (f16::from_bits(c as u16), f16::from_bits((c >> 16) as u16));
    let wanted = [1.0, 2.0, 4.0, 2.5, 6.0, 8.0, 12.0, 17.0].map(f16::from_f32);
    let doubles = "struct S { a: u32, b: f64, c: vec3<f64>, d: u32 }\n@group(0) @binding(0) var<storage, read> s: array<S, 2>;\n\
        @group(0) @binding(1) var<storage, read_write> out: array<f64>;\n@compute @workgroup_size(2)\nfn main(@builtin(local_invocation_index) i: u32) {\n    \
        out[i * 4u] = s[i].b; out[i * 4u + 1u] = s[i].c.x; out[i * 4u + 2u] = s[i].c.z; out[i * 4u + 3u] = f64(s[i].a + s[i].d);\n}\n";
    // a 0, b 8, c 32 to 56, d 56, stride 64.
    let double = |k: u64| {
        [
            k,
            (k as f64 + 0.5).to_bits(),
            0,
            0,
            (k as f64 + 1.5).to_bits(),
            0,
            (k as f64 + 3.5).to_bits(),
            k * 10,
        ]
    };
    let longs = "struct S { a: i64, b: u32, c: vec2<u64> }\n@group(0) @binding(0) var<storage, read_write> s: array<S>;\n@compute @workgroup_size(2)\n\
        fn main(@builtin(local_invocation_index) i: u32) { s[i].a -= 1li; s[i].c = s[i].c.yx; s[i].b++; }\n";
    vec![
        Case::new("layout/f16 members", halves)
            .features(Features::F16)
            .read(&bytes)
            .output(&wanted),
        Case::new("layout/f64 members", doubles)
            .features(Features::F64)
            .read(&[double(3), double(8)].concat())
            .output(&[3.5f64, 4.5, 6.5, 33.0, 8.5, 9.5, 11.5, 88.0]),
        Case::new("layout/64-bit integer members", longs)
            .features(Features::INT64)
            .write(
                &[0u64, 5, 7, 1 << 40, 1 << 32, 6, 8, 9],
                &[u64::MAX, 6, 1 << 40, 7, (1 << 32) - 1, 7, 9, 8],
            ),
    ]
}
