package sqlwrite

import (
	"strconv"
	"strings"
)

// number is a decimal number: digits × 10^exponent. Its digits have no zero at either end. The
// number 0 has no digits.
type number struct {
	negative bool
	digits   string
	exponent int
}

// numberOf reads a JSON number. It returns false if the exponent is larger than any database keeps.
func numberOf(text string) (number, bool) {
	mantissa, power, _ := strings.Cut(strings.ToLower(text), "e")
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return number{}, true
	}
	exponent := 0
	if power != "" {
		var err error
		if exponent, err = strconv.Atoi(power); err != nil || exponent > 200_000 || exponent < -200_000 {
			return number{}, false
		}
	}
	n := number{negative, strings.TrimRight(digits, "0"), exponent - len(fraction)}
	n.exponent += len(digits) - len(n.digits)
	return n, true
}

// whole returns how many digits stand before the point, fraction how many after it.
func (n number) whole() int    { return max(0, len(n.digits)+n.exponent) }
func (n number) fraction() int { return max(0, -n.exponent) }

// String writes the number without an exponent.
func (n number) String() string {
	sign := ""
	if n.negative {
		sign = "-"
	}
	switch point := len(n.digits) + n.exponent; {
	case n.digits == "":
		return "0"
	case n.exponent >= 0:
		return sign + n.digits + strings.Repeat("0", n.exponent)
	case point > 0:
		return sign + n.digits[:point] + "." + n.digits[point:]
	default:
		return sign + "0." + strings.Repeat("0", -point) + n.digits
	}
}

// float returns the number as a binary fraction of the given bits. It returns false if the number
// has more digits than that keeps, or is too large.
func (n number) float(bits int) (float64, bool) {
	f, err := strconv.ParseFloat(n.digits+"e"+strconv.Itoa(n.exponent), bits)
	if n.digits == "" {
		return 0, true
	}
	if err != nil {
		return 0, false
	}
	if n.negative {
		f = -f
	}
	back, ok := numberOf(strconv.FormatFloat(f, 'e', -1, bits))
	return f, ok && back == n
}
