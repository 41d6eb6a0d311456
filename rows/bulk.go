package rows

// Bulk is a bulk action.
type Bulk struct {
	ID        string  `row:"id,key"`
	List      string  `row:"list"`
	Verb      string  `row:"verb"`
	Request   string  `row:"request"` // JSON
	Actor     string  `row:"actor"`
	Rate      int64   `row:"rate"` // rows a second; 0: no bound
	State     string  `row:"state"`
	Total     int64   `row:"total"`
	Next      int64   `row:"next"` // the next row
	Done      int64   `row:"done"`
	Refused   int64   `row:"refused"`
	Created   Instant `row:"created"`
	Ended     Instant `row:"ended,null"`
	Holder    string  `row:"holder,null"`     // who runs it
	HeldUntil Instant `row:"held_until,null"` // others leave it alone until then
}

// BulkRow is one row of a bulk action.
type BulkRow struct {
	Bulk    string `row:"bulk,key"`
	Seq     int64  `row:"seq,key"` // from 1
	Item    string `row:"item"`
	Outcome string `row:"outcome,null"` // absent: it is open
	Detail  string `row:"detail,null"`
}

// Table implements Row.
func (*Bulk) Table() string { return "hf_bulk" }

// Table implements Row.
func (*BulkRow) Table() string { return "hf_bulk_row" }
