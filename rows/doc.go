// Package rows defines the rows of a store's tables as both kinds of stores understand them. Each
// struct is a row of one table; its fields describe the columns:
//
//	type Token struct {
//		Name string  `row:"name,key"`
//		Hash []byte  `row:"hash"`
//		Used Instant `row:"used,null"`
//	}
//
// From the struct a store makes the statements that put a row and read all rows. A copy of a store and
// a salvage of a damaged one walk the tables (Tables). To add a side table, add a struct here, an
// entry in the list of tables, and a CREATE TABLE in each store.
//
// Columns are in the order of the table's CREATE TABLE in SQLite, where a salvage finds them by
// position. A test compares the structs with the tables of both stores.
//
// Types of fields are string, []byte, int64, bool, Instant and holdfast.ID; in a split table also
// holdfast.State. A tag may have these words after the column's name:
//
//	split  (of the first column) the row is spread over several tables, or refers to names by
//	       number: a store reads and writes it with code of its own
//	-      (instead of a name) the field is copied with the row, but is not a column
//	book   (of the first column) people have set the rows; there are few, and a salvage reads them first
//	secret the SHA-256 of a secret: a salvage accepts no other length. Of other columns a salvage
//	       drops a bad value and keeps the row, except for the key and a column with final
//	key    the column is part of the key; key columns come first, and are integers or texts
//	null   a zero value (of Instant: None) is NULL
//	grows  a row that replaces another must have a higher value
//	final=N  a row with this value is not replaced
//	fixed  the row never changes: one with its key and the same value of this column replaces nothing,
//	       and any other is refused by the table
//	newer  a row replaces another only if its value is higher; with several such columns, the first that
//	       differs decides
//	stays  a row that replaces another keeps the other's value: only a statement of its own changes it
//	exact  a text that programs compare: a copy refuses a text that a store cannot keep
//	beside (of a number outside the key) the row stands beside a message of a bundle: the column has
//	       the number of the bundle, and the first column of the key that of the message
//	parent (of a number, the key) the row stands beside a bundle, whose number it has
//	of=T   the row belongs to the row of table T (or "T|U") with the same number. Without that
//	       row it is neither copied nor salvaged
package rows
