//! Literals and constant expressions of every type.

use crate::case::{Case, Features, Number, to_f16};

pub fn cases() -> Vec<Case> {
    vec![
        written(
            "i32",
            Features::NONE,
            &[
                ("0", 0),
                ("-1", -1),
                ("2147483647i", i32::MAX),
                ("-2147483648", i32::MIN),
                ("0x7fi", 127),
                ("5 * 7 - 36", -1),
            ],
        ),
        written(
            "u32",
            Features::NONE,
            &[
                ("0u", 0),
                ("4294967295u", u32::MAX),
                ("0xdeadbeefu", 0xdead_beef),
                ("1u << 31u", 1 << 31),
                ("~0u", !0),
                ("7", 7),
            ],
        ),
        written(
            "i64",
            Features::INT64,
            &[
                ("0li", 0),
                ("-5li", -5),
                ("9223372036854775807li", i64::MAX),
                ("0x123456789abcdefli", 0x0123_4567_89ab_cdef),
                ("-4294967297li", -4_294_967_297),
            ],
        ),
        written(
            "u64",
            Features::INT64,
            &[
                ("0lu", 0),
                ("18446744073709551615lu", u64::MAX),
                ("0xdeadbeefcafef00dlu", 0xdead_beef_cafe_f00d),
                ("4294967296lu", 1 << 32),
            ],
        ),
        written(
            "f32",
            Features::NONE,
            &[
                ("0.0", 0.0),
                ("1.5f", 1.5),
                ("0.1", 0.1),
                ("-3.4028234e38", f32::MIN),
                ("1.17549435e-38", f32::MIN_POSITIVE),
                ("16777217", 16777217.0),
                ("0x1.8p+3", 12.0),
                ("1e-3", 1e-3),
                ("3", 3.0),
                ("1.0 / 3.0", 1.0 / 3.0),
                ("1.1920929e-7f", f32::EPSILON),
            ],
        ),
        written(
            "f16",
            Features::F16,
            &[
                ("0.0h", 0.0),
                ("1.5h", 1.5),
                ("0.1h", 0.1),
                ("-65504.0h", -65504.0),
                ("6.103515625e-5h", 6.103515625e-5),
                ("3", 3.0),
            ]
            .map(|(text, value)| (text, to_f16(value))),
        ),
        written(
            "f64",
            Features::F64,
            &[
                ("0.0lf", 0.0),
                ("0.1lf", 0.1),
                ("-1.7976931348623157e308lf", f64::MIN),
                ("2.2250738585072014e-308lf", f64::MIN_POSITIVE),
                ("1e-10lf", 1e-10),
                ("123456789.12345679lf", 123456789.12345679),
            ],
        ),
        truths(),
    ]
}

fn written<T: Number>(ty: &str, features: Features, values: &[(&str, T)]) -> Case {
    let enable = if ty == "f16" { "enable f16;\n" } else { "" };
    let stores = values
        .iter()
        .enumerate()
        .map(|(i, (text, _))| format!("    out[{i}] = {text};\n"))
        .collect::<String>();
    let source = format!(
        "{enable}@group(0) @binding(0) var<storage, read_write> out: array<{ty}>;\n@compute @workgroup_size(1)\nfn main() {{\n{stores}}}\n"
    );
    let values = values.iter().map(|(_, value)| *value).collect::<Vec<_>>();
    Case::new(format!("literal/{ty}"), source)
        .features(features)
        .output(&values)
}

fn truths() -> Case {
    let source = "const YES = true;\nconst NO = !YES;\n@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n\
        @compute @workgroup_size(1)\nfn main() {\n    out[0] = u32(YES);\n    out[1] = u32(NO);\n    out[2] = select(3u, 4u, true && !false);\n    \
        out[3] = u32(5 > 4);\n}\n";
    Case::new("literal/bool", source).output(&[1u32, 0, 4, 1])
}
