package holdfast

// Category is what kind of work a destination takes (SF-02). It belongs to the
// destination and is not stored with messages. A program may have others than
// those of this list: any name of up to MaxNameLen bytes is one.
type Category string

// The categories of a site. A destination that is a peer has none.
const (
	CategoryExternalSystem Category = "external-system" // a call of a foreign API
	CategoryCachedDBWrite  Category = "cached-db-write" // a write of a foreign database
	CategoryNotification   Category = "notification"    // a notification, on its way to central
)
