package sqlwrite

import "github.com/holdfast-mq/holdfast"

// Judge is how a driver's error is classified: false, it is no answer of a
// database.
func Judge(driver string, err error) (holdfast.Outcome, string, bool) {
	v, answered := dialects()[driver].judge(err)
	return v.outcome, v.code, answered
}
