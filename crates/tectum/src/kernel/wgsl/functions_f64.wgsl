// Constants and polynomials of functions.wgsl for f64. Native twin: `src/kernel/math/double.rs`.
//
// Errors are bounded by the cases of the op table only (4 to 8 units in the last place); they are not swept as those of math_f64.wgsl are.
//
// Source. Polynomials our own, interpolated at Chebyshev nodes.

// ln 2, and what log2(e) lost.
const TECTUM_LN2: f64 = 0.6931471805599453lf;
const TECTUM_LOG2_E_LOW: f64 = 2.0355273740931033e-17lf;
// pi/2 and 1/3 in two parts.
const TECTUM_RIGHT_HI: f64 = 1.5707963267948966lf;
const TECTUM_RIGHT_LO: f64 = 6.123233995736766e-17lf;
const TECTUM_THIRD_HI: f64 = 0.3333333333333333lf;
const TECTUM_THIRD_LO: f64 = 1.850371707708594e-17lf;
// About tan(pi/8) and its inverse: between them the arctangent is reduced by pi/4.
const TECTUM_ATAN_NEAR: f64 = 0.41421356lf;
const TECTUM_ATAN_FAR: f64 = 2.4142135lf;
// Next to this number its inverse is lost.
const TECTUM_HALF_EXP_END: f64 = 1.2676506002282294e30lf;
// From here on three terms of a series give the inverse hyperbolic sine.
const TECTUM_ASINH_FAR: f64 = 512.0lf;
// No power of 2 with an exponent of this magnitude is a number of the type.
const TECTUM_POW_OUTSIDE: f64 = 1100.0lf;
// Largest argument with a finite hyperbolic sine; where the arctangent is pi/2; no power of a number other than 1 to a greater one is finite and not 0.
const TECTUM_SINH_MAX: u64 = 0x408633ce8fb9f87dlu;
const TECTUM_ATAN_END: u64 = 0x43b0000000000000lu;
const TECTUM_POW_END: u64 = 0x44f0000000000000lu;

// (asin(x)/x - 1)/z of z = x^2 <= 1/4.
fn tectum_arcsine_polynomial(z: f64) -> f64 {
    var p: f64 = 0.028757851367421566lf;
    p = p * z - 0.014851887071247204lf;
    p = p * z + 0.01740087944269402lf;
    p = p * z + 0.005457506718640358lf;
    p = p * z + 0.01032281435018578lf;
    p = p * z + 0.011479177415184906lf;
    p = p * z + 0.013971212973552933lf;
    p = p * z + 0.017352392720869973lf;
    p = p * z + 0.02237217294214989lf;
    p = p * z + 0.030381944138531247lf;
    p = p * z + 0.04464285714635543lf;
    p = p * z + 0.07499999999998433lf;
    p = p * z + 0.16666666666666669lf;
    return p;
}

// (atan(x)/x - 1)/z of z = x^2, |x| <= tan(pi/8).
fn tectum_arctangent_polynomial(z: f64) -> f64 {
    var p: f64 = -0.01917680071440982lf;
    p = p * z + 0.03923158774224821lf;
    p = p * z - 0.050854472957630806lf;
    p = p * z + 0.05858148446112195lf;
    p = p * z - 0.06664511393659163lf;
    p = p * z + 0.07692183187012169lf;
    p = p * z - 0.09090904577959731lf;
    p = p * z + 0.11111111015252322lf;
    p = p * z - 0.14285714284666493lf;
    p = p * z + 0.1999999999999552lf;
    p = p * z - 0.3333333333333333lf;
    return p;
}

// (sinh(x)/x - 1)/z of z = x^2 <= 1.
fn tectum_sinh_polynomial(z: f64) -> f64 {
    var p: f64 = 7.746178593018827e-13lf;
    p = p * z + 1.6057679623801638e-10lf;
    p = p * z + 2.5052117695907823e-08lf;
    p = p * z + 2.7557319191381816e-06lf;
    p = p * z + 0.00019841269841324198lf;
    p = p * z + 0.008333333333333299lf;
    p = p * z + 0.16666666666666666lf;
    return p;
}

// (asinh(x)/x - 1)/z of z = x^2 <= 1/4.
fn tectum_asinh_polynomial(z: f64) -> f64 {
    var p: f64 = 0.0018854117655039003lf;
    p = p * z - 0.004992717198142511lf;
    p = p * z + 0.007622309427481728lf;
    p = p * z - 0.009591452221673173lf;
    p = p * z + 0.011526210169675569lf;
    p = p * z - 0.013962235682232349lf;
    p = p * z + 0.01735258771519257lf;
    p = p * z - 0.022372151449922602lf;
    p = p * z + 0.030381944248546365lf;
    p = p * z - 0.044642857140252436lf;
    p = p * z + 0.0749999999999864lf;
    p = p * z - 0.16666666666666666lf;
    return p;
}

// (atanh(x)/x - 1)/z of z = x^2 <= 1/4.
fn tectum_atanh_polynomial(z: f64) -> f64 {
    var p: f64 = 0.21098097885975797lf;
    p = p * z - 0.14450491183414468lf;
    p = p * z + 0.13557903913692299lf;
    p = p * z + 0.012292448728540531lf;
    p = p * z + 0.05441915418234587lf;
    p = p * z + 0.05160769881147162lf;
    p = p * z + 0.05893099692590042lf;
    p = p * z + 0.06665886352701884lf;
    p = p * z + 0.07692345940270638lf;
    p = p * z + 0.09090907881509189lf;
    p = p * z + 0.11111111133938968lf;
    p = p * z + 0.14285714285490106lf;
    p = p * z + 0.20000000000000864lf;
    p = p * z + 0.3333333333333333lf;
    return p;
}

// (atanh(s)/s - 1 - z/3)/z^2 of z = s^2, |s| <= 3 - 2 sqrt(2).
fn tectum_power_polynomial(z: f64) -> f64 {
    var p: f64 = 0.058615471864575136lf;
    p = p * z + 0.05853122198091089lf;
    p = p * z + 0.06667402196495904lf;
    p = p * z + 0.07692297484025014lf;
    p = p * z + 0.09090909167670516lf;
    p = p * z + 0.11111111110828056lf;
    p = p * z + 0.14285714285714682lf;
    p = p * z + 0.2lf;
    return p;
}
