// The activation that a product ends with, by its code: 0 none, 1 relu, 2 tanh, 3 sigmoid, 4 gelu,
// 5 gelu by erf, 6 silu, 7 elu, 8 hard sigmoid, 9 hard swish, 10 relu6.
fn tectum_activation(x: real, code: u32) -> real {
    switch code {
        case 1u: { return tectum_relu(x); }
        case 2u: { return tectum_tanh(x); }
        case 3u: { return tectum_sigmoid(x); }
        case 4u: { return tectum_gelu(x); }
        case 5u: { return tectum_gelu_erf(x); }
        case 6u: { return tectum_silu(x); }
        case 7u: { return tectum_elu(x); }
        case 8u: { return tectum_hard_sigmoid(x); }
        case 9u: { return tectum_hard_swish(x); }
        case 10u: { return tectum_relu6(x); }
        default: { return x; }
    }
}
