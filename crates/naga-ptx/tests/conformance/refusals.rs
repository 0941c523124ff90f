//! Sources that the translator must refuse, with the error kind and the construct that its position
//! points to.

use naga_ptx::{ErrorKind, Options};

use crate::module;
use crate::report::{Outcome, Run};

/// A source that is refused.
struct Refusal {
    name: &'static str,
    source: &'static str,
    entry: &'static str,
    constants: &'static [(&'static str, f64)],
    kind: ErrorKind,
    /// Parts of the source, one of which must contain or touch the position; none if no position is
    /// required.
    at: &'static [&'static str],
}

const fn refusal(
    name: &'static str,
    kind: ErrorKind,
    at: &'static [&'static str],
    source: &'static str,
) -> Refusal {
    Refusal {
        name,
        source,
        entry: "main",
        constants: &[],
        kind,
        at,
    }
}

use ErrorKind::{EntryPoint, Override, Uniformity, Unsupported};

const REFUSALS: &[Refusal] = &[
    refusal(
        "texture load",
        Unsupported,
        &["var t: texture_2d<f32>", "textureLoad(t, vec2<u32>(0u), 0)"],
        "@group(0) @binding(0) var t: texture_2d<f32>;\n@group(0) @binding(1) var<storage, read_write> out: array<f32>;\n\
         @compute @workgroup_size(1) fn main() { out[0] = textureLoad(t, vec2<u32>(0u), 0).x; }",
    ),
    refusal(
        "texture size",
        Unsupported,
        &["var t: texture_2d<f32>", "textureDimensions(t)"],
        "@group(0) @binding(0) var t: texture_2d<f32>;\n@group(0) @binding(1) var<storage, read_write> out: array<u32>;\n\
         @compute @workgroup_size(1) fn main() { out[0] = textureDimensions(t).x; }",
    ),
    refusal(
        "sampler",
        Unsupported,
        &[
            "var t: texture_2d<f32>",
            "var s: sampler",
            "textureSampleLevel(t, s, vec2<f32>(0.5), 0.0)",
        ],
        "@group(0) @binding(0) var t: texture_2d<f32>;\n@group(0) @binding(1) var s: sampler;\n@group(0) @binding(2) var<storage, read_write> out: array<f32>;\n\
         @compute @workgroup_size(1) fn main() { out[0] = textureSampleLevel(t, s, vec2<f32>(0.5), 0.0).x; }",
    ),
    refusal(
        "storage texture",
        Unsupported,
        &[
            "var t: texture_storage_2d<r32float, write>",
            "textureStore(t, vec2<u32>(0u), vec4<f32>(1.0))",
        ],
        "@group(0) @binding(0) var t: texture_storage_2d<r32float, write>;\n@compute @workgroup_size(1) fn main() { textureStore(t, vec2<u32>(0u), vec4<f32>(1.0)); }",
    ),
    refusal(
        "texture atomic",
        Unsupported,
        &[
            "var t: texture_storage_2d<r32uint, atomic>",
            "textureAtomicAdd(t, vec2<u32>(0u), 1u)",
        ],
        "@group(0) @binding(0) var t: texture_storage_2d<r32uint, atomic>;\n@compute @workgroup_size(1) fn main() { textureAtomicAdd(t, vec2<u32>(0u), 1u); }",
    ),
    refusal(
        "binding array",
        Unsupported,
        &["var<storage, read> many: binding_array<B, 4>", "many[1].x"],
        "enable wgpu_binding_array;\nstruct B { x: u32 }\n@group(0) @binding(0) var<storage, read> many: binding_array<B, 4>;\n\
         @group(0) @binding(1) var<storage, read_write> out: array<u32>;\n@compute @workgroup_size(1) fn main() { out[0] = many[1].x; }",
    ),
    refusal(
        "ray query",
        Unsupported,
        &[
            "var scene: acceleration_structure",
            "var q: ray_query",
            "rayQueryInitialize(&q, scene, d)",
            "rayQueryProceed(&q)",
            "RayDesc(0u, 255u, 0.0, 1.0, vec3<f32>(0.0), vec3<f32>(1.0))",
        ],
        "enable wgpu_ray_query;\n@group(0) @binding(0) var scene: acceleration_structure;\n@compute @workgroup_size(1) fn main() {\n    var q: ray_query;\n    \
         let d = RayDesc(0u, 255u, 0.0, 1.0, vec3<f32>(0.0), vec3<f32>(1.0));\n    rayQueryInitialize(&q, scene, d);\n    rayQueryProceed(&q);\n}",
    ),
    refusal(
        "immediate data",
        Unsupported,
        &["var<immediate> n: u32", "out[0] = n"],
        "var<immediate> n: u32;\n@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n@compute @workgroup_size(1) fn main() { out[0] = n; }",
    ),
    refusal(
        "barrier in a branch by invocation",
        Uniformity,
        &["workgroupBarrier()"],
        "@compute @workgroup_size(64) fn main(@builtin(local_invocation_id) lid: vec3<u32>) { if (lid.x < 3u) { workgroupBarrier(); } }",
    ),
    refusal(
        "barrier in a loop by invocation",
        Uniformity,
        &["workgroupBarrier()"],
        "@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) { for (var k = 0u; k < i; k++) { workgroupBarrier(); } }",
    ),
    refusal(
        "barrier after a return by invocation",
        Uniformity,
        &["workgroupBarrier()"],
        "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { if (id.x > 70u) { return; } workgroupBarrier(); }",
    ),
    refusal(
        "barrier after a continue by invocation",
        Uniformity,
        &["workgroupBarrier()"],
        "@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) { for (var k = 0u; k < 4u; k++) { if (k == i) { continue; } workgroupBarrier(); } }",
    ),
    refusal(
        "barrier by a value from a writable buffer",
        Uniformity,
        &["storageBarrier()"],
        "@group(0) @binding(0) var<storage, read_write> b: array<u32>;\n@compute @workgroup_size(64) fn main() { if (b[0] == 1u) { storageBarrier(); } }",
    ),
    refusal(
        "barrier by a value that a branch by invocation assigned",
        Uniformity,
        &["workgroupBarrier()"],
        "@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) { var n = 0u; if (i == 3u) { n = 1u; } if (n == 1u) { workgroupBarrier(); } }",
    ),
    refusal(
        "barrier in a function called by some",
        Uniformity,
        &["workgroupBarrier()", "sync();"],
        "fn sync() { workgroupBarrier(); }\n@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) { switch i { case 0u: { sync(); } default: { } } }",
    ),
    refusal(
        "barrier by an argument",
        Uniformity,
        &["workgroupBarrier()", "sync(i)"],
        "fn sync(n: u32) { if (n == 0u) { workgroupBarrier(); } }\n@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) { sync(i); }",
    ),
    refusal(
        "workgroupUniformLoad in a branch by invocation",
        Uniformity,
        &["workgroupUniformLoad(&w)"],
        "var<workgroup> w: u32;\n@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n\
         @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) { if (i < 3u) { out[i] = workgroupUniformLoad(&w); } }",
    ),
    refusal(
        "subgroup sum in a branch by invocation",
        Uniformity,
        &["subgroupAdd(i)"],
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n\
         @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) { if (i % 2u == 0u) { out[i] = subgroupAdd(i); } }",
    ),
    refusal(
        "ballot in a loop by invocation",
        Uniformity,
        &["subgroupBallot(k == 2u)"],
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n\
         @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) { for (var k = 0u; k < i; k++) { out[i] = subgroupBallot(k == 2u).x; } }",
    ),
    refusal(
        "shuffle in a switch by invocation",
        Uniformity,
        &["subgroupShuffle(i, 1u)"],
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n\
         @compute @workgroup_size(64) fn main(@builtin(subgroup_invocation_id) i: u32) { switch i { case 1u, 2u: { out[i] = subgroupShuffle(i, 1u); } default: { } } }",
    ),
    refusal(
        "subgroup sum in a workgroup that does not fill its subgroups",
        Unsupported,
        &["subgroupAdd(i)"],
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n\
         @compute @workgroup_size(44) fn main(@builtin(local_invocation_index) i: u32) { out[i] = subgroupAdd(i); }",
    ),
    refusal(
        "override without a value",
        Override,
        &[],
        "override N: u32;\n@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n@compute @workgroup_size(1) fn main() { out[0] = N; }",
    ),
    Refusal {
        constants: &[("N", -1.0)],
        ..refusal(
            "override with a value out of range",
            Override,
            &[],
            "override N: u32 = 3u;\n@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n@compute @workgroup_size(1) fn main() { out[0] = N; }",
        )
    },
    Refusal {
        entry: "other",
        ..refusal(
            "unknown entry point",
            EntryPoint,
            &[],
            "@compute @workgroup_size(1) fn main() { }",
        )
    },
    refusal(
        "fragment entry point",
        EntryPoint,
        &[],
        "@fragment fn main() -> @location(0) vec4<f32> { return vec4<f32>(dpdx(1.0)); }",
    ),
    refusal(
        "vertex entry point",
        EntryPoint,
        &[],
        "@vertex fn main() -> @builtin(position) vec4<f32> { return vec4<f32>(1.0); }",
    ),
];

/// Tries every source.
pub fn run() -> Run {
    let outcomes = REFUSALS.iter().map(|refusal| {
        let outcome = match refusal.check() {
            Ok(()) => Outcome::Passed,
            Err(why) => Outcome::Failed(why),
        };
        (format!("refusal/{}", refusal.name), outcome)
    });
    let outcomes = outcomes.collect();
    Run {
        runner: "refusals",
        device: "refusals".to_owned(),
        driver: String::new(),
        outcomes,
        note: None,
    }
}

impl Refusal {
    fn check(&self) -> Result<(), String> {
        let (module, info) = module::validated_but_for_uniformity(self.source)?;
        let constants = self
            .constants
            .iter()
            .map(|&(name, value)| (name.to_owned(), value))
            .collect();
        let options = Options {
            constants,
            ..Options::default()
        };
        let error = match naga_ptx::translate(&module, &info, self.entry, &options) {
            Ok(_) => return Err("translated".to_owned()),
            Err(error) => error,
        };
        if error.kind() != self.kind {
            return Err(format!(
                "wanted {:?}, got {:?}: {error}",
                self.kind,
                error.kind()
            ));
        }
        let touches = |part: &&str, range: &std::ops::Range<usize>| {
            self.source
                .match_indices(*part)
                .any(|(start, _)| range.start < start + part.len() && start < range.end)
        };
        match error.span().to_range() {
            _ if self.at.is_empty() => Ok(()),
            None => Err(format!("without a place: {error}")),
            Some(range) if self.at.iter().any(|part| touches(part, &range)) => Ok(()),
            Some(range) => Err(format!("points to `{}`: {error}", &self.source[range])),
        }
    }
}
