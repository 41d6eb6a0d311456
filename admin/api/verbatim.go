package api

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Spliced writes v, which must become an object, with one more member whose bytes stay as they are. Marshal
// would compact and escape them, and then a hash over the shown bytes would differ from one over the stored
// bytes.
func Spliced(v any, name string, raw []byte) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	if raw == nil {
		return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
	}
	b.Truncate(b.Len() - len("}\n"))
	if b.Len() > 1 {
		b.WriteByte(',')
	}
	fmt.Fprintf(&b, "%q:%s}", name, raw)
	return b.Bytes(), nil
}
