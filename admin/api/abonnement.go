package api

// Abonnement is what a client of the Notificaties API has asked for with a subscription, as it is shown to it.
type Abonnement struct {
	Owner             string             `json:"owner" maxLength:"200" doc:"The id of the client that may change it."`
	Kanalen           []FilterGroup      `json:"kanalen,omitempty" nullable:"false" doc:"Each asks for the notifications of one kanaal, which is a topic."`
	SendCloudEvents   bool               `json:"sendCloudevents,omitempty" doc:"Notifications are sent as CloudEvents, and CloudEvents are sent too."`
	CloudEventFilters []CloudEventFilter `json:"cloudeventFilters,omitempty" nullable:"false" doc:"Each asks for CloudEvents."`
}

// FilterGroup asks for the notifications of one kanaal.
type FilterGroup struct {
	Naam    string            `json:"naam" example:"zaken"`
	Filters map[string]string `json:"filters,omitempty" doc:"By kenmerk; * is any value."`
}

// CloudEventFilter asks for CloudEvents.
type CloudEventFilter struct {
	TypeSubstring string            `json:"typeSubstring" doc:"Stands anywhere in the type." example:"nl.overheid.zaken"`
	Filters       map[string]string `json:"filters,omitempty" doc:"By member of the data; * is any value."`
}
