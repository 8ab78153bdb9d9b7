package feedhistory

import "fmt"

// name returns the name of an enumeration's value.
func name[T ~uint8](value T, names ...string) string {
	if int(value) < len(names) {
		return names[value]
	}
	return unknown
}

// unknown is the name of values that are none.
const unknown = "unknown"

// named finds the value that has a name.
func named[T interface {
	~uint8
	String() string
}](value *T, text []byte) error {
	for v := T(0); v.String() != unknown; v++ {
		if v.String() == string(text) {
			*value = v
			return nil
		}
	}
	return fmt.Errorf("%q names no %T", text, *value)
}

// MarshalText returns the name that String returns.
func (f Format) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads such a name.
func (f *Format) UnmarshalText(text []byte) error { return named(f, text) }

// MarshalText returns the name that String returns.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads such a name.
func (k *Kind) UnmarshalText(text []byte) error { return named(k, text) }

// MarshalText returns the name that String returns.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads such a name.
func (v *Verdict) UnmarshalText(text []byte) error { return named(v, text) }

// MarshalText returns the name that String returns.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads such a name.
func (r *Reason) UnmarshalText(text []byte) error { return named(r, text) }
