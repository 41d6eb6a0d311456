package holdfast

// Category says what kind of work a destination takes (SF-02). It belongs to the
// destination and is not stored with messages. A program may use other categories
// than those below: any name of up to MaxNameLen bytes.
type Category string

// The categories of a site. A destination that is a peer has no category.
const (
	CategoryExternalSystem Category = "external-system" // a call of a foreign API
	CategoryCachedDBWrite  Category = "cached-db-write" // a write of a foreign database
	CategoryNotification   Category = "notification"    // a notification, on its way to central
)
