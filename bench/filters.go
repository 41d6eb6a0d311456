package main

import "fmt"

// friends are filters that an event of the measures meets.
var friends = [eventFan]string{
	`{}`,
	`{"types":["order.*"],"topics":["orders"]}`,
	`{"attributes":{"country":"nl"}}`,
	`{"where":[{"field":"data.total","op":"gte","value":12.5},{"field":"data.voucher","op":"neq","value":1}]}`,
	`{"where":[{"field":"attributes.country","op":"in","value":["nl","be"]}]}`,
	`{"where":[{"field":"subject","op":"prefix","value":"A-"}]}`,
	`{"where":[{"field":"data.name","op":"suffix","value":"3"}]}`,
	`{"not":{"where":[{"field":"data.voucher","op":"exists"}]}}`,
	`{"any":[{"types":["x"]},{"where":[{"field":"data.price","op":"lt","value":1}]}]}`,
	`{"where":[{"field":"source","op":"nin","value":["/a","/b"]}]}`,
}

// strangers are filters that it does not meet. The number makes each one different, as those of many
// subscribers are.
var strangers = []string{
	`{"types":["order.x%[1]d.*"]}`,
	`{"types":["order.created"],"topics":["t%[1]d"]}`,
	`{"attributes":{"country":"c%[1]d"}}`,
	`{"where":[{"field":"attributes.priority","op":"gt","value":1%[1]d0}]}`,
	`{"where":[{"field":"data.total","op":"lt","value":-%[1]d}]}`,
	`{"where":[{"field":"data.price","op":"gte","value":%[1]d},{"field":"data.price","op":"lt","value":%[1]d.5}]}`,
	`{"types":["order.created"],"where":[{"field":"subject","op":"in","value":["s%[1]d","t%[1]d"]}]}`,
	`{"where":[{"field":"subject","op":"prefix","value":"A-17%[1]d"}]}`,
	`{"where":[{"field":"data.f%[1]d","op":"exists"}]}`,
	`{"any":[{"types":["x%[1]d"]},{"where":[{"field":"data.n","op":"eq","value":%[1]d}]}]}`,
	`{"not":{"where":[{"field":"subject","op":"prefix","value":"A-"}]},"where":[{"field":"data.q","op":"nin","value":[%[1]d]}]}`,
}

// filterOf returns the filter of subscription n. The first ones are friends.
func filterOf(n int) string {
	if n < len(friends) {
		return friends[n]
	}
	return fmt.Sprintf(strangers[n%len(strangers)], n)
}
